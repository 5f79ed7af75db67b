// Numbers for pieces of text. The first four are the same in every vocabulary of pieces:
//
//   0 <pad>   1 <s>   2 </s>   3 <unk>   then pieces, the most frequent first
//
// On disk a vocabulary is text, a piece and its count a line without the first four, as fairseq's
// dict.txt is. Bytes and characters have vocabularies without them: a byte is its own number, and
// characters are numbered in the order of their codes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace thimble {

inline constexpr int32_t kPadToken = 0;
inline constexpr int32_t kBeginToken = 1;
inline constexpr int32_t kEndToken = 2;
inline constexpr int32_t kUnknownToken = 3;
inline constexpr int32_t kSpecialTokens = 4;

class Vocabulary {
 public:
  // Pieces by how often they were seen; of equally frequent ones, the first by their text first.
  // Words seen fewer than `least` times are left out.
  explicit Vocabulary(const std::unordered_map<std::string, int64_t>& counts, int64_t least = 1);
  // As to_text() writes it. UserError, naming the line, where it is none.
  static Vocabulary read(const std::string& path);

  int64_t size() const { return std::ssize(pieces_); }
  // kUnknownToken where there is no such piece.
  int32_t number_of(std::string_view piece) const;
  // REQUIRES: 0 <= number < size().
  const std::string& piece(int64_t number) const { return pieces_[static_cast<size_t>(number)]; }

  // Numbers of the pieces of a line, apart by spaces. "</s>" in a text is a word that nobody knows,
  // not the end of its sentence; so are the other three.
  std::vector<int32_t> encode(std::string_view line) const;
  // The pieces apart by spaces; padding, beginnings and ends are left out.
  std::string decode(const std::vector<int32_t>& numbers) const;

  std::string to_text() const;

 private:
  Vocabulary() = default;
  void add(std::string piece, int64_t count);

  std::vector<std::string> pieces_;
  std::vector<int64_t> counts_;
  std::unordered_map<std::string, int32_t> numbers_;
};

// The characters of a text, numbered in the order of their codes.
class CharacterVocabulary {
 public:
  void count(std::string_view text);
  // A character a line; a line break is "\n", a backslash "\\".
  std::string to_text() const;
  static CharacterVocabulary read(const std::string& path);

  int64_t size() const { return std::ssize(characters_); }
  // -1: it is not there.
  int32_t number_of(char32_t c) const;
  char32_t character(int64_t number) const { return characters_[static_cast<size_t>(number)]; }

 private:
  std::vector<char32_t> characters_;
};

}  // namespace thimble
