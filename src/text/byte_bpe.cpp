#include "text/byte_bpe.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>

#include "base/error.h"
#include "base/io/json.h"
#include "text/characters.h"
#include "text/utf8.h"

namespace thimble {
namespace {

constexpr std::string_view kEndOfText = "<|endoftext|>";
constexpr size_t kMostKnown = 200'000;  // words; beyond, all are forgotten
constexpr int64_t kMostTokens = 1 << 24;

uint64_t key_of(int32_t left, int32_t right) {
  return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
}

// The character that stands for each byte: itself where it can be seen, else one of those from U+0100 on.
std::unordered_map<char32_t, char> bytes_by_character() {
  std::unordered_map<char32_t, char> bytes;
  char32_t next = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    const bool seen = (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte != 0xad);
    bytes[seen ? static_cast<char32_t>(byte) : next++] = static_cast<char>(byte);
  }
  return bytes;
}

// The bytes that a token is spelt with; empty where a character stands for none.
std::optional<std::string> bytes_of(std::string_view spelling) {
  static const std::unordered_map<char32_t, char> bytes = bytes_by_character();
  std::string text;
  for (const char32_t c : decode_utf8(spelling)) {
    const auto byte = bytes.find(c);
    if (byte == bytes.end()) return {};
    text += byte->second;
  }
  return text;
}

// White_Space: what Python's str.split() splits at, but for the separators of ASCII.
bool is_white(char32_t c) { return is_space(c) && (c < 0x1c || c > 0x1f); }

enum class Kind : uint8_t { letter, number, white, other };

Kind kind_of(char32_t c) {
  if (is_letter(c)) return Kind::letter;
  if (is_number(c)) return Kind::number;
  return is_white(c) ? Kind::white : Kind::other;
}

// The characters that the first word has, by GPT-2's pattern:
//   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
size_t first_word(std::u32string_view text) {
  for (const std::u32string_view end : {U"'s", U"'t", U"'re", U"'ve", U"'m", U"'ll", U"'d"}) {
    if (text.starts_with(end)) return end.size();
  }
  const size_t begin = text[0] == U' ' && text.size() > 1 ? 1 : 0;
  size_t at = begin;
  if (const Kind kind = kind_of(text[begin]); kind != Kind::white) {
    while (at < text.size() && kind_of(text[at]) == kind) ++at;
    return at;
  }
  for (at = 0; at < text.size() && kind_of(text[at]) == Kind::white;) ++at;
  // The last white space before a word is left to it, unless it is the only one.
  return at < text.size() && at > 1 ? at - 1 : at;
}

}  // namespace

ByteBpe ByteBpe::read(const std::string& vocabulary_path, const std::string& merges_path) {
  const nlohmann::json vocabulary = read_json(vocabulary_path, "a vocabulary");
  user_check(
      vocabulary.is_object() && !vocabulary.empty(),
      "'{}' is no vocabulary: it should be tokens with their numbers, as vocab.json of GPT-2",
      vocabulary_path);
  ByteBpe bpe;
  std::ranges::fill(bpe.of_byte_, -1);
  std::vector<bool> there;
  std::unordered_map<std::string, int32_t> numbers;  // by spelling
  for (const auto& [spelling, number] : vocabulary.items()) {
    user_check(number.is_number_integer() && number.get<int64_t>() >= 0 &&
                   number.get<int64_t>() < kMostTokens,
               "'{}' gives the token '{}' no number from 0 on", vocabulary_path, spelling);
    const auto place = number.get<size_t>();
    if (place >= there.size()) {
      there.resize(place + 1);
      bpe.tokens_.resize(place + 1);
    }
    user_check(!there[place], "'{}' has two tokens of number {}", vocabulary_path, place);
    there[place] = true;
    // A spelling that is not of bytes was added by hand, and stands for itself.
    bpe.tokens_[place] = bytes_of(spelling).value_or(spelling);
    numbers[spelling] = static_cast<int32_t>(place);
    if (spelling == kEndOfText) bpe.end_of_text_ = static_cast<int32_t>(place);
    if (bpe.tokens_[place].size() == 1) {
      bpe.of_byte_[static_cast<unsigned char>(bpe.tokens_[place][0])] = static_cast<int32_t>(place);
    }
  }
  int64_t rank = 0;
  for_each_line(merges_path, [&](int64_t line, std::string_view text) {
    if (text.empty() || (line == 1 && text.starts_with("#version"))) return;
    const size_t space = text.find(' ');
    const bool two = space != std::string_view::npos && space > 0 && space + 1 < text.size() &&
                     text.find(' ', space + 1) == std::string_view::npos;
    user_check(two, "'{}' is no file of merges: line {} should be two tokens and a space between",
               merges_path, line);
    const auto number_of = [&](std::string spelling) {
      const auto found = numbers.find(spelling);
      user_check(found != numbers.end(),
                 "line {} of '{}' names '{}', which is not in '{}'; take both files from one place",
                 line, merges_path, spelling, vocabulary_path);
      return found->second;
    };
    const std::string left(text.substr(0, space)), right(text.substr(space + 1));
    bpe.merges_.try_emplace(key_of(number_of(left), number_of(right)),
                            Merge{rank++, number_of(left + right)});
  });
  return bpe;
}

const std::vector<int32_t>& ByteBpe::numbers_of(std::string_view word) const {
  if (known_.size() > kMostKnown) known_.clear();
  const auto [at, is_new] = known_.try_emplace(std::string(word));
  std::vector<int32_t>& parts = at->second;
  if (!is_new) return parts;
  for (const char c : word) {
    const auto byte = static_cast<unsigned char>(c);
    user_check(of_byte_[byte] >= 0,
               "the vocabulary has no token for the byte {}; choose one with all 256 of them",
               byte);
    parts.push_back(of_byte_[byte]);
  }
  for (;;) {
    const Merge* best = nullptr;
    uint64_t pair = 0;
    for (size_t i = 0; i + 1 < parts.size(); ++i) {
      const auto merge = merges_.find(key_of(parts[i], parts[i + 1]));
      if (merge == merges_.end() || (best != nullptr && merge->second.rank >= best->rank)) continue;
      best = &merge->second;
      pair = merge->first;
    }
    if (best == nullptr) return parts;
    size_t kept = 0;
    for (size_t i = 0; i < parts.size(); ++i) {
      const bool merged = i + 1 < parts.size() && key_of(parts[i], parts[i + 1]) == pair;
      parts[kept++] = merged ? best->result : parts[i];
      if (merged) ++i;
    }
    parts.resize(kept);
  }
}

void ByteBpe::add_words(std::string_view text, std::vector<int32_t>& numbers) const {
  const std::u32string characters = decode_utf8(text);
  for (std::u32string_view rest = characters; !rest.empty();) {
    const size_t length = first_word(rest);
    const std::vector<int32_t>& word = numbers_of(encode_utf8(rest.substr(0, length)));
    numbers.insert(numbers.end(), word.begin(), word.end());
    rest.remove_prefix(length);
  }
}

std::vector<int32_t> ByteBpe::encode(std::string_view text) const {
  std::vector<int32_t> numbers;
  for (;;) {
    const size_t end = end_of_text_ >= 0 ? text.find(kEndOfText) : std::string_view::npos;
    add_words(text.substr(0, end), numbers);
    if (end == std::string_view::npos) return numbers;
    numbers.push_back(end_of_text_);
    text.remove_prefix(end + kEndOfText.size());
  }
}

std::string ByteBpe::decode(std::span<const int32_t> numbers) const {
  std::string text;
  for (const int32_t number : numbers) {
    if (number >= 0 && number < size()) text += tokens_[static_cast<size_t>(number)];
  }
  return text;
}

}  // namespace thimble
