// The way of a line of raw text to its pieces, before these are numbered, and back: the same on
// every file of a data set, and on what is translated later, so it is kept beside the data.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "text/bpe.h"

namespace thimble {

struct PreparationOptions {
  bool tokenise = false;    // by Moses' rules
  bool lower_case = false;  // behind that
  std::string language;     // "de", "en", ...: for tokens
};

class Preparation {
 public:
  // Without merges, pieces are words.
  explicit Preparation(PreparationOptions options, std::shared_ptr<const Bpe> bpe = nullptr);

  // Words: what lengths of sentences are counted in.
  std::string words(std::string_view line) const;
  // Words cut into pieces.
  std::string pieces(std::string_view words) const;
  // Text for people of pieces.
  std::string text(std::string_view pieces) const;

  const PreparationOptions& options() const { return options_; }

 private:
  PreparationOptions options_;
  std::shared_ptr<const Bpe> bpe_;
};

}  // namespace thimble
