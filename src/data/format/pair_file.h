// Pairs of sentences as token numbers, in the order of their lengths, read by ranges and never
// resident.
//
//   │ "thimpair" │ u32 version │ u32 bytes a token │ u64 pairs │ u64 tokens │
//   │ u32 source vocabulary │ u32 target vocabulary │ 32 bytes: sha256 of both vocabularies │
//   │ u64 x (2 pairs + 1): where each sentence begins, in tokens, source and target by turns │
//   │ tokens, u16 or u32 │
//
// Sentences have neither beginning nor end marked: whoever reads them adds what the model wants.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/io/file.h"
#include "base/io/sha256.h"

namespace thimble {

struct TokenPair {
  std::vector<int32_t> source;
  std::vector<int32_t> target;
};

// Common to all files of one data set.
struct PairVocabularies {
  int64_t source = 0;  // sizes
  int64_t target = 0;
  Sha256::Digest digest = {};

  bool operator==(const PairVocabularies&) const = default;
};

class PairFile {
 public:
  // Header and index checked; UserError, naming the file, where they are not sound.
  explicit PairFile(const std::string& path);

  const std::string& path() const { return file_.path(); }
  int64_t count() const { return count_; }
  const PairVocabularies& vocabularies() const { return vocabularies_; }

  struct Lengths {
    int64_t source = 0;
    int64_t target = 0;
  };
  Lengths lengths(int64_t pair) const;
  // Allocate nothing. REQUIRES: `out` is as long as the sentence.
  void read_source(int64_t pair, std::span<int32_t> out) const;
  void read_target(int64_t pair, std::span<int32_t> out) const;

 private:
  // Where sentence s (2 * pair, + 1 for its target) begins, and the two behind it.
  void offsets(int64_t sentence, std::span<uint64_t> out) const;
  void read(int64_t sentence, std::span<int32_t> out) const;

  ReadFile file_;
  int64_t count_ = 0;
  int64_t token_bytes_ = 2;
  int64_t tokens_at_ = 0;  // byte
  PairVocabularies vocabularies_;
};

// Sorted by the longer sentence of each pair; pairs of equal length stay in their order. Leaves it
// to the caller to commit the file. REQUIRES: there are pairs.
void write_pairs(AtomicFile& file, std::vector<TokenPair> pairs,
                 const PairVocabularies& vocabularies);

}  // namespace thimble
