#include "text/preparation.h"

#include "text/tokenise.h"
#include "text/utf8.h"

namespace thimble {

Preparation::Preparation(PreparationOptions options, std::shared_ptr<const Bpe> bpe)
    : options_(std::move(options)), bpe_(std::move(bpe)) {}

std::string Preparation::words(std::string_view line) const {
  std::string text =
      options_.tokenise ? moses_tokenise(line, options_.language) : std::string(line);
  return options_.lower_case ? lower_case(text) : text;
}

std::string Preparation::pieces(std::string_view words) const {
  return bpe_ ? bpe_->apply(words) : std::string(words);
}

std::string Preparation::text(std::string_view pieces) const {
  const std::string words = bpe_ ? join_pieces(pieces) : std::string(pieces);
  return options_.tokenise ? moses_detokenise(words, options_.language) : words;
}

}  // namespace thimble
