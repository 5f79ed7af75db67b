// A language model's data set in a folder, made of raw text: what data/sets/tokens.cpp reads.
//
//   train.bin, val.bin   (data/format/token_file.h)
//   tokens.json          how large the vocabulary is, and what its tokens are
//   vocabulary.txt       of characters and of pieces
//   codes.bpe            of pieces that are cut from words
//   vocab.json, merges.txt   of GPT-2's tokens (text/byte_bpe.h)
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "text/preparation.h"

namespace thimble {

enum class TokenKind : uint8_t { bytes, characters, pieces, gpt2 };
std::string_view name_of(TokenKind kind);  // "bytes", "characters", ...

struct TokenOptions {
  std::string out;                      // folder
  std::vector<std::string> texts;       // one behind the other
  std::vector<std::string> valid = {};  // none: the last tenth of the texts
  TokenKind kind = TokenKind::bytes;
  PreparationOptions preparation = {};  // of pieces
  int64_t merges = 0;                   // likewise; learnt from the texts
  std::string codes = {};               // or read from here
  std::string tokenizer = {};           // of gpt2: the folder of vocab.json and merges.txt
  bool raw = false;                     // files without a header, as nanoGPT has them
  std::function<void(const std::string& sentence)> say = {};
};

// UserError where a text is empty or no UTF-8 (of bytes, that does not matter).
void make_tokens(const TokenOptions& options);

}  // namespace thimble
