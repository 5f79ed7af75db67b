// Byte pair encoding as GPT-2 has it, by the two files that transformers and tokenizers save:
//
//   vocab.json   {"!": 0, ..., "Ġthe": 262, ...}: tokens and their numbers, a byte being one
//                character each (Ġ is a space)
//   merges.txt   #version: 0.2, then one merge a line, the first to be made first: "Ġ t"
//
// Text is cut into words with the space before them, numbers, punctuation and white space; what is
// in one of those is merged, and never across two. Every byte has a token, so that all text can be
// said.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace thimble {

class ByteBpe {
 public:
  // UserError, naming file and line or token, where they are none or do not belong together.
  static ByteBpe read(const std::string& vocabulary_path, const std::string& merges_path);

  int64_t size() const { return std::ssize(tokens_); }
  // Not to be called from two threads at once: tokens of words are remembered. "<|endoftext|>" is one
  // token, where the vocabulary has it. REQUIRES: the text is UTF-8. UserError for a byte that has
  // no token.
  std::vector<int32_t> encode(std::string_view text) const;
  // Bytes, which may be no UTF-8 where a character is cut in two. Numbers beyond the vocabulary say
  // nothing.
  std::string decode(std::span<const int32_t> numbers) const;

 private:
  struct Merge {
    int64_t rank = 0;
    int32_t result = 0;
  };

  ByteBpe() = default;
  void add_words(std::string_view text, std::vector<int32_t>& numbers) const;
  const std::vector<int32_t>& numbers_of(std::string_view word) const;

  std::vector<std::string> tokens_;  // by number: their bytes
  int32_t of_byte_[256] = {};        // -1: it has no token
  int32_t end_of_text_ = -1;
  std::unordered_map<uint64_t, Merge> merges_;  // by the numbers of a pair
  mutable std::unordered_map<std::string, std::vector<int32_t>> known_;
};

}  // namespace thimble
