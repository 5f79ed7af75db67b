#include "text/vocabulary.h"

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "text/utf8.h"

namespace thimble {
namespace {

constexpr const char* kSpecials[] = {"<pad>", "<s>", "</s>", "<unk>"};

}  // namespace

void Vocabulary::add(std::string piece, int64_t count) {
  numbers_[piece] = static_cast<int32_t>(pieces_.size());
  pieces_.push_back(std::move(piece));
  counts_.push_back(count);
}

Vocabulary::Vocabulary(const std::unordered_map<std::string, int64_t>& counts, int64_t least) {
  std::vector<std::pair<std::string, int64_t>> sorted;
  for (const auto& [piece, count] : counts) {
    const bool special = std::ranges::find(kSpecials, piece) != std::end(kSpecials);
    if (count >= least && !special) sorted.emplace_back(piece, count);
  }
  std::ranges::sort(sorted, [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  });
  for (const char* special : kSpecials) add(special, 0);
  for (auto& [piece, count] : sorted) add(std::move(piece), count);
}

Vocabulary Vocabulary::read(const std::string& path) {
  Vocabulary vocabulary;
  for (const char* special : kSpecials) vocabulary.add(special, 0);
  for_each_line(path, [&](int64_t number, std::string_view line) {
    const size_t space = line.rfind(' ');
    int64_t count = -1;
    if (space != std::string_view::npos && space > 0) {
      std::from_chars(line.data() + space + 1, line.data() + line.size(), count);
    }
    user_check(count >= 0, "'{}', line {}: a vocabulary has a piece and its count a line", path,
               number);
    std::string piece(line.substr(0, space));
    user_check(!vocabulary.numbers_.contains(piece), "'{}', line {}: '{}' is there twice", path,
               number, piece);
    vocabulary.add(std::move(piece), count);
  });
  return vocabulary;
}

int32_t Vocabulary::number_of(std::string_view piece) const {
  const auto at = numbers_.find(std::string(piece));
  return at == numbers_.end() ? kUnknownToken : at->second;
}

std::vector<int32_t> Vocabulary::encode(std::string_view line) const {
  std::vector<int32_t> numbers;
  for (const std::string_view piece : split_spaces(line)) {
    const int32_t number = number_of(piece);
    numbers.push_back(number < kSpecialTokens ? kUnknownToken : number);
  }
  return numbers;
}

std::string Vocabulary::decode(const std::vector<int32_t>& numbers) const {
  std::string line;
  for (const int32_t number : numbers) {
    if (number >= kPadToken && number < kUnknownToken) continue;
    if (!line.empty()) line += ' ';
    line += piece(number);
  }
  return line;
}

std::string Vocabulary::to_text() const {
  std::string text;
  for (size_t i = kSpecialTokens; i < pieces_.size(); ++i) {
    text += fmt::format("{} {}\n", pieces_[i], counts_[i]);
  }
  return text;
}

void CharacterVocabulary::count(std::string_view text) {
  for (const char32_t c : decode_utf8(text)) {
    const auto at = std::ranges::lower_bound(characters_, c);
    if (at == characters_.end() || *at != c) characters_.insert(at, c);
  }
}

std::string CharacterVocabulary::to_text() const {
  std::string text;
  for (const char32_t c : characters_) {
    if (c == U'\n') {
      text += "\\n";
    } else if (c == U'\r') {
      text += "\\r";
    } else if (c == U'\\') {
      text += "\\\\";
    } else {
      append_utf8(text, c);
    }
    text += '\n';
  }
  return text;
}

CharacterVocabulary CharacterVocabulary::read(const std::string& path) {
  CharacterVocabulary vocabulary;
  for_each_line(path, [&](int64_t number, std::string_view line) {
    if (line == "\\n") line = "\n";
    if (line == "\\r") line = "\r";
    if (line == "\\\\") line = "\\";
    const std::u32string letters = decode_utf8(line);
    user_check(letters.size() == 1 &&
                   (vocabulary.characters_.empty() || vocabulary.characters_.back() < letters[0]),
               "'{}', line {}: a vocabulary of characters has one a line, in order", path, number);
    vocabulary.characters_.push_back(letters[0]);
  });
  return vocabulary;
}

int32_t CharacterVocabulary::number_of(char32_t c) const {
  const auto at = std::ranges::lower_bound(characters_, c);
  return at == characters_.end() || *at != c ? -1 : static_cast<int32_t>(at - characters_.begin());
}

}  // namespace thimble
