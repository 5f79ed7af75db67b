// BLEU of translations as sacreBLEU computes it, to the digit: the tokens of mteval-v13a, n-grams
// up to 4, exponential smoothing of orders without a match.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace thimble {

struct BleuOptions {
  bool lower_case = false;
  bool tokenise = true;  // by 13a; false: tokens are what is between white space
};

struct Bleu {
  double score = 0;                       // 0..100
  std::array<double, 4> precisions = {};  // in percent
  double brevity = 1;
  int64_t length = 0;            // of the translations, in tokens
  int64_t reference_length = 0;  // of the references nearest in length
};

class BleuCounter {
 public:
  explicit BleuCounter(const BleuOptions& options) : options_(options) {}

  // A translation and its references. REQUIRES: UTF-8.
  void add(std::string_view translation, std::span<const std::string> references);
  Bleu result() const;

 private:
  std::vector<std::string> tokens_of(std::string_view line) const;

  const BleuOptions options_;
  std::array<int64_t, 4> right_ = {};
  std::array<int64_t, 4> all_ = {};
  int64_t length_ = 0;
  int64_t reference_length_ = 0;
};

// A translation a line, against one or more files of references. UserError where they do not have
// the same number of lines.
Bleu bleu_of_files(const std::string& translations, std::span<const std::string> references,
                   const BleuOptions& options);

// "nrefs:1|case:lc|eff:no|tok:13a|smooth:exp": what sacreBLEU calls these options.
std::string signature_of(const BleuOptions& options, size_t references);
// "BLEU = 37.42 68.1/43.9/30.5/21.6 (BP = 1.000 ratio = 1.002 hyp_len = 13080 ref_len = 13058)".
std::string to_string(const Bleu& bleu);

// The tokens of mteval-v13a, apart by single spaces.
std::string tokenise_13a(std::string_view line);

}  // namespace thimble
