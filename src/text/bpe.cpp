#include "text/bpe.h"

#include <limits>

#include "base/error.h"
#include "text/utf8.h"

namespace thimble {
namespace {

constexpr std::string_view kEnd = "</w>";
constexpr std::string_view kJoint = "@@";
constexpr size_t kMostKnown = 200'000;  // words; beyond, all are forgotten

std::string key_of(std::string_view left, std::string_view right) {
  std::string key(left);
  key += '\0';
  key += right;
  return key;
}

}  // namespace

void count_words(std::string_view line, WordCounts& counts) {
  for (const std::string_view word : split_spaces(line)) ++counts[std::string(word)];
}

Bpe::Bpe(std::span<const Merge> merges) {
  for (size_t i = 0; i < merges.size(); ++i) {
    ranks_.try_emplace(key_of(merges[i].left, merges[i].right), static_cast<int64_t>(i));
  }
}

const std::string& Bpe::pieces_of(std::string_view word) const {
  if (known_.size() > kMostKnown) known_.clear();
  const auto [at, is_new] = known_.try_emplace(std::string(word));
  if (!is_new) return at->second;
  std::vector<std::string> pieces;
  for (const std::string_view c : characters_of(word)) pieces.emplace_back(c);
  pieces.back() += kEnd;
  for (;;) {
    int64_t best = std::numeric_limits<int64_t>::max();
    size_t where = 0;
    for (size_t i = 0; i + 1 < pieces.size(); ++i) {
      const auto rank = ranks_.find(key_of(pieces[i], pieces[i + 1]));
      if (rank == ranks_.end() || rank->second >= best) continue;
      best = rank->second;
      where = i;
    }
    if (best == std::numeric_limits<int64_t>::max()) break;
    const std::string left = pieces[where], right = pieces[where + 1];
    std::vector<std::string> merged;
    for (size_t i = 0; i < pieces.size(); ++i) {
      const bool pair = i + 1 < pieces.size() && pieces[i] == left && pieces[i + 1] == right;
      merged.push_back(pair ? left + right : pieces[i]);
      if (pair) ++i;
    }
    pieces = std::move(merged);
  }
  pieces.back().resize(pieces.back().size() - kEnd.size());
  if (pieces.back().empty()) pieces.pop_back();
  for (size_t i = 0; i < pieces.size(); ++i) {
    at->second += pieces[i];
    if (i + 1 < pieces.size()) at->second += "@@ ";
  }
  return at->second;
}

std::string Bpe::apply(std::string_view line) const {
  std::string result;
  for (const std::string_view word : split_spaces(line)) {
    if (!result.empty()) result += ' ';
    result += pieces_of(word);
  }
  return result;
}

std::string join_pieces(std::string_view line) {
  std::string result;
  bool open = true;  // nothing, or a piece that goes on
  for (const std::string_view piece : split_spaces(line)) {
    if (!open) result += ' ';
    open = piece.ends_with(kJoint);
    result += open ? piece.substr(0, piece.size() - kJoint.size()) : piece;
  }
  return result;
}

std::string to_text(std::span<const Merge> merges) {
  std::string text = "#version: 0.2\n";
  for (const Merge& merge : merges) text += merge.left + " " + merge.right + "\n";
  return text;
}

std::vector<Merge> read_merges(const std::string& path) {
  std::vector<Merge> merges;
  for_each_line(path, [&](int64_t number, std::string_view line) {
    if (number == 1) {
      user_check(line == "#version: 0.2",
                 "'{}' is no file of BPE merges: it should begin with '#version: 0.2'; learn it "
                 "with `thimble data bpe learn`",
                 path);
      return;
    }
    const std::vector<std::string_view> parts = split_spaces(line);
    user_check(parts.size() == 2, "'{}', line {}: a merge is two pieces apart by a space", path,
               number);
    merges.push_back({std::string(parts[0]), std::string(parts[1])});
  });
  user_check(!merges.empty(), "'{}' has no BPE merges", path);
  return merges;
}

}  // namespace thimble
