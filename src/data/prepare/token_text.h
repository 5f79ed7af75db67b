// Text as the tokens of a data set that `thimble data tokens` made, and back: for what a language
// model is asked, and says.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace thimble {

class TokenText {
 public:
  // By tokens.json and the files beside it, or by vocab.json and merges.txt alone. UserError where
  // the folder says nothing of what its tokens are.
  static std::unique_ptr<TokenText> read(const std::string& folder);
  virtual ~TokenText() = default;

  // The gap between a text and its continuation: a space where tokens are words.
  virtual std::string_view gap() const { return ""; }
  // UserError for text that has no tokens here.
  virtual std::vector<int32_t> encode(std::string_view text) const = 0;
  // Of tokens that follow each other, whatever was there before: what people read.
  virtual std::string decode(std::span<const int32_t> tokens) const = 0;
};

// The sha256 of what a folder of `thimble data tokens` makes its tokens by, as in
// DatasetInfo::vocabulary_sha256. Empty where it does not say, and of GPT-2's, which is one and the
// same wherever it comes from.
std::string vocabulary_digest(const std::string& folder);

}  // namespace thimble
