// Byte pair encoding of words, in the manner (and to the file format) of subword-nmt: words are cut
// into pieces that were seen often together; all pieces of a word but the last end in "@@".
//
//   #version: 0.2
//   t h            one merge a line, the most frequent first; </w> ends a word
//   th e</w>
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace thimble {

// How often each word is in a text. Several languages are learnt from jointly by counting them all.
using WordCounts = std::unordered_map<std::string, int64_t>;
void count_words(std::string_view line, WordCounts& counts);

struct Merge {
  std::string left;
  std::string right;
  bool operator==(const Merge&) const = default;
};

// At most `most` merges, of pairs that are there `least_count` times at least. The result is that
// of subword-nmt's learn_bpe, merge by merge.
std::vector<Merge> learn_bpe(const WordCounts& counts, int64_t most, int64_t least_count = 2);

class Bpe {
 public:
  explicit Bpe(std::span<const Merge> merges);

  // Words apart by spaces, and so are the pieces. Not to be called from two threads at once: pieces
  // of words are remembered.
  std::string apply(std::string_view line) const;

  int64_t merges() const { return std::ssize(ranks_); }

 private:
  const std::string& pieces_of(std::string_view word) const;

  std::unordered_map<std::string, int64_t> ranks_;  // by left + '\0' + right
  mutable std::unordered_map<std::string, std::string> known_;
};

// A line in one piece again: "th@@ ere" is "there".
std::string join_pieces(std::string_view line);

std::string to_text(std::span<const Merge> merges);
// UserError, naming the line, where it is no file of merges.
std::vector<Merge> read_merges(const std::string& path);

}  // namespace thimble
