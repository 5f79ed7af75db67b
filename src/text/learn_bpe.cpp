// Which pairs to merge. The most frequent is merged everywhere and the counts around it change, again
// and again. So that finding it stays cheap, rare pairs are put aside, as subword-nmt does and exactly
// when it does: a pair that was put aside and comes up anew is counted from zero until the next look at
// all pairs. So the time of putting aside can decide between pairs that are almost equally frequent.
#include <algorithm>
#include <map>

#include "text/bpe.h"
#include "text/utf8.h"

namespace thimble {
namespace {

// Pieces are numbers; `names` has their text.
using Piece = uint32_t;
using Pair = std::pair<Piece, Piece>;

struct PairHash {
  size_t operator()(const Pair& pair) const {
    return (static_cast<size_t>(pair.first) << 32 | pair.second) * 0x9e3779b97f4a7c15ull;
  }
};
using Counts = std::unordered_map<Pair, int64_t, PairHash>;

struct Word {
  std::vector<Piece> pieces;
  int64_t count = 0;
};

class Learner {
 public:
  explicit Learner(const WordCounts& counts) {
    for (const auto& [text, count] : counts) {
      if (text.empty()) continue;
      Word word{.count = count};
      const std::vector<std::string_view> letters = characters_of(text);
      for (size_t i = 0; i < letters.size(); ++i) {
        word.pieces.push_back(
            number_of(std::string(letters[i]) + (i + 1 == letters.size() ? "</w>" : "")));
      }
      words_.push_back(std::move(word));
    }
    for (size_t w = 0; w < words_.size(); ++w) {
      const std::vector<Piece>& pieces = words_[w].pieces;
      for (size_t i = 0; i + 1 < pieces.size(); ++i) {
        stats_[{pieces[i], pieces[i + 1]}] += words_[w].count;
        ++where_[{pieces[i], pieces[i + 1]}][static_cast<uint32_t>(w)];
      }
    }
    all_ = stats_;
  }

  std::vector<Merge> run(int64_t most, int64_t least_count) {
    std::vector<Merge> merges;
    if (stats_.empty()) return merges;
    double threshold = static_cast<double>(most_frequent()->second) / 10;
    for (int64_t i = 0; i < most; ++i) {
      auto best = most_frequent();
      if (best == stats_.end() || (i > 0 && static_cast<double>(best->second) < threshold)) {
        put_aside(threshold);
        stats_ = all_;
        best = most_frequent();
        const auto step = static_cast<double>(i);
        threshold = static_cast<double>(best->second) * step / (step + 10000.0);
        const Pair kept = best->first;
        put_aside(threshold);
        best = stats_.find(kept);
      }
      if (best->second < least_count) break;
      const Pair pair = best->first;
      merges.push_back({names_[pair.first], names_[pair.second]});
      merge(pair);
      if (i % 100 == 0) put_aside(threshold);
    }
    return merges;
  }

 private:
  Piece number_of(const std::string& text) {
    const auto [at, is_new] = numbers_.try_emplace(text, static_cast<Piece>(names_.size()));
    if (is_new) names_.push_back(text);
    return at->second;
  }

  // Of equally frequent ones, the last by their texts.
  Counts::iterator most_frequent() {
    const auto before = [this](const auto& a, const auto& b) {
      if (a.second != b.second) return a.second < b.second;
      const int left = names_[a.first.first].compare(names_[b.first.first]);
      return left != 0 ? left < 0 : names_[a.first.second] < names_[b.first.second];
    };
    return std::max_element(stats_.begin(), stats_.end(), before);
  }

  void put_aside(double threshold) {
    for (auto at = stats_.begin(); at != stats_.end();) {
      if (static_cast<double>(at->second) >= threshold) {
        ++at;
        continue;
      }
      if (at->second < 0) {
        all_[at->first] += at->second;
      } else {
        all_[at->first] = at->second;
      }
      at = stats_.erase(at);
    }
  }

  void merge(Pair pair) {
    const Piece joined = number_of(names_[pair.first] + names_[pair.second]);
    const auto words = std::move(where_[pair]);
    where_.erase(pair);
    stats_[pair] = 0;
    for (const auto& [w, times] : words) {
      if (times < 1) continue;
      Word& word = words_[w];
      const std::vector<Piece> old = std::move(word.pieces);
      word.pieces = merged(old, pair, joined);
      forget_around(pair, old, w, word.count);
      count_around(joined, word.pieces, w, word.count);
    }
    stats_[pair] = 0;
  }

  static std::vector<Piece> merged(const std::vector<Piece>& old, Pair pair, Piece joined) {
    std::vector<Piece> pieces;
    for (size_t i = 0; i < old.size(); ++i) {
      const bool here = i + 1 < old.size() && old[i] == pair.first && old[i + 1] == pair.second;
      pieces.push_back(here ? joined : old[i]);
      if (here) ++i;
    }
    return pieces;
  }

  void change(Piece left, Piece right, uint32_t word, int64_t count, int times) {
    stats_[{left, right}] += count * times;
    where_[{left, right}][word] += times;
  }

  // Of "A B C" with B C merged, A B goes; of "A B C B", C B too, but of "A B C B C" it went already.
  void forget_around(Pair pair, const std::vector<Piece>& old, uint32_t word, int64_t count) {
    for (size_t i = 0; i + 1 < old.size();) {
      if (old[i] != pair.first || old[i + 1] != pair.second) {
        ++i;
        continue;
      }
      if (i > 0) change(old[i - 1], old[i], word, count, -1);
      if (i + 2 < old.size()) {
        const bool again =
            old[i + 2] == pair.first && i + 3 < old.size() && old[i + 3] == pair.second;
        if (!again) change(old[i + 1], old[i + 2], word, count, -1);
      }
      i += 2;
    }
  }

  // Of "A BC D", A BC and BC D come; of "A BC BC", the second is counted by the one behind.
  void count_around(Piece joined, const std::vector<Piece>& pieces, uint32_t word, int64_t count) {
    for (size_t i = 0; i < pieces.size(); ++i) {
      if (pieces[i] != joined) continue;
      if (i > 0) change(pieces[i - 1], pieces[i], word, count, 1);
      if (i + 1 < pieces.size() && pieces[i + 1] != joined) {
        change(pieces[i], pieces[i + 1], word, count, 1);
      }
    }
  }

  std::vector<std::string> names_;
  std::unordered_map<std::string, Piece> numbers_;
  std::vector<Word> words_;
  Counts stats_;  // frequent ones
  Counts all_;    // as they were when they were put aside
  std::unordered_map<Pair, std::map<uint32_t, int>, PairHash> where_;  // words, and how often there
};

}  // namespace

std::vector<Merge> learn_bpe(const WordCounts& counts, int64_t most, int64_t least_count) {
  return Learner(counts).run(most, least_count);
}

}  // namespace thimble
