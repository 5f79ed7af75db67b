#include "plan/bytes/spread_reuse.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <span>
#include <vector>

#include "base/error.h"
#include "plan/bytes/liveness.h"
#include "plan/make_plan.h"
#include "plan/policy.h"

namespace thimble {
namespace {

constexpr int kShort = 16;        // calls that a buffer may live and still be moved
constexpr size_t kMost = 60'000;  // buffers; more would take longer than they gain
constexpr int kNever = -1;

// For every byte from `begin` on, the last call that a buffer placed so far lies there.
class Past {
 public:
  Past(int64_t begin, int64_t end) : begin_(begin), end_(end) { pieces_[begin] = kNever; }

  void put(int64_t begin, int64_t end, int last) {
    begin = std::max(begin, begin_);
    if (begin >= end) return;
    split(begin);
    split(end);
    auto at = pieces_.find(begin);
    at->second = last;
    pieces_.erase(std::next(at), end < end_ ? pieces_.find(end) : pieces_.end());
    if (const auto next = std::next(at); next != pieces_.end() && next->second == last) {
      pieces_.erase(next);
    }
    if (at != pieces_.begin() && std::prev(at)->second == last) pieces_.erase(at);
  }

  // Calls body(begin, end, last) in order of address.
  template <class Body>
  void for_each(const Body& body) const {
    for (auto piece = pieces_.begin(); piece != pieces_.end(); ++piece) {
      const auto next = std::next(piece);
      body(piece->first, next == pieces_.end() ? end_ : next->first, piece->second);
    }
  }

 private:
  void split(int64_t at) {
    if (at >= end_) return;
    const auto next = pieces_.lower_bound(at);
    if (next != pieces_.end() && next->first == at) return;
    pieces_.emplace_hint(next, at, std::prev(next)->second);
  }

  const int64_t begin_, end_;
  std::map<int64_t, int> pieces_;  // by first byte; each ends where the next begins
};

struct Piece {
  int64_t begin, end;
  int last;
};

// Where `size` bytes have been left alone for longest; -1: nowhere better than `here`.
class Search {
 public:
  Search(int64_t size, int64_t here) : size_(size), here_(here) {}

  // Neighbouring free pieces, in order of address.
  void look(const std::vector<Piece>& free) {
    for (size_t first = 0; first < free.size(); ++first) try_at(free, first, free[first].begin);
    // The place it has may begin inside of a piece.
    for (size_t first = 0; first < free.size(); ++first) {
      if (free[first].begin < here_ && here_ < free[first].end) try_at(free, first, here_);
    }
  }
  int64_t best() const { return best_; }

 private:
  void try_at(const std::vector<Piece>& free, size_t first, int64_t at) {
    if (at + size_ > free.back().end) return;
    int last = kNever;
    for (size_t p = first; p < free.size() && free[p].begin < at + size_; ++p) {
      last = std::max(last, free[p].last);
    }
    const bool better = best_ < 0 || last < last_ || (last == last_ && at == here_);
    if (!better) return;
    best_ = at;
    last_ = last;
  }

  const int64_t size_, here_;
  int64_t best_ = -1;
  int last_ = kNever;
};

// REQUIRES: buffers that are live at the same time share no byte. It stays so, and the highest end
// stays what it is.
class Mover {
 public:
  Mover(std::span<const BufferUse> uses, std::vector<Bytes>& offsets, Bytes arena)
      : uses_(uses),
        offsets_(offsets),
        arena_(arena.count),
        past_(end_of_what_stays(uses, offsets), arena.count) {}

  void run() {
    std::vector<size_t> order(uses_.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::ranges::stable_sort(order, {}, [&](size_t b) { return uses_[b].first; });
    for (size_t i = 0; i < order.size(); ++i) {
      const size_t b = order[i];
      if (size(b) == 0) continue;
      // Buffers at the top stay, and so does the arena.
      const bool moves = uses_[b].last - uses_[b].first < kShort && end(b) < arena_;
      if (moves) move(b, std::span(order).subspan(i + 1));
      past_.put(begin(b), end(b), uses_[b].last);
    }
  }

 private:
  // Buffers that live throughout lie at the bottom, side by side.
  static int64_t end_of_what_stays(std::span<const BufferUse> uses,
                                   const std::vector<Bytes>& offsets) {
    int last = 0;
    for (const BufferUse& use : uses) last = std::max(last, use.last);
    std::map<int64_t, int64_t> stays;  // ends, by first byte
    for (size_t b = 0; b < uses.size(); ++b) {
      const int64_t bytes = align_up(uses[b].size).count;
      const bool throughout = uses[b].first == 0 && uses[b].last == last;
      if (throughout && bytes > 0) stays[offsets[b].count] = offsets[b].count + bytes;
    }
    int64_t end = 0;
    for (const auto& [begin, past] : stays) {
      if (begin != end) break;
      end = past;
    }
    return end;
  }

  int64_t size(size_t b) const { return align_up(uses_[b].size).count; }
  int64_t begin(size_t b) const { return offsets_[b].count; }
  int64_t end(size_t b) const { return begin(b) + size(b); }

  // Among what is free from its first call to its last. `later`: buffers that begin after it.
  void move(size_t b, std::span<const size_t> later) {
    std::vector<Piece> ahead;
    for (const size_t other : later) {
      if (uses_[other].first > uses_[b].last) break;
      if (size(other) > 0) ahead.push_back({begin(other), end(other), 0});
    }
    std::ranges::sort(ahead, {}, &Piece::begin);
    Search search(size(b), begin(b));
    std::vector<Piece> free;
    const auto close = [&] {
      if (!free.empty()) search.look(free);
      free.clear();
    };
    size_t next = 0;  // of `ahead`
    past_.for_each([&](int64_t from, int64_t to, int last) {
      if (last >= uses_[b].first) return close();
      while (from < to) {  // the piece without what lies ahead
        while (next < ahead.size() && ahead[next].end <= from) ++next;
        const int64_t until = next < ahead.size() ? std::clamp(ahead[next].begin, from, to) : to;
        if (until > from) free.push_back({from, until, last});
        if (until == to) break;
        close();
        from = std::min(to, ahead[next].end);
      }
    });
    close();
    internal_check(search.best() >= 0, "a buffer lies where another does");
    offsets_[b] = Bytes(search.best());
  }

  const std::span<const BufferUse> uses_;
  std::vector<Bytes>& offsets_;
  const int64_t arena_;
  Past past_;
};

// Calls visit(buffer, address) for every place of the plan that names one.
template <class Visit>
void for_each_place(const Buffers& buffers, Plan& plan, const Visit& visit) {
  for (size_t v = 0; v < plan.sources.size(); ++v) {
    if (buffers.sources[v] >= 0) visit(buffers.sources[v], plan.sources[v]);
  }
  for (size_t s = 0; s < plan.calls.size(); ++s) {
    const CallBuffers& call = buffers.calls[s];
    for (size_t i = 0; i < call.inputs.size(); ++i) visit(call.inputs[i], plan.calls[s].inputs[i]);
    for (size_t k = 0; k < call.outputs.size(); ++k) {
      visit(call.outputs[k], plan.calls[s].outputs[k]);
    }
    if (call.workspace >= 0) visit(call.workspace, plan.calls[s].workspace_at);
  }
}

}  // namespace

Plan spread_reuse(const Graph& graph, const Costs& costs, Plan plan) {
  if (choose_policy(plan.policy).policy->sharing != Sharing::sharing) return plan;
  Buffers buffers =
      assign_buffers(graph, schedule_of(plan), costs, Sharing::sharing, plan.microbatches);
  if (buffers.uses.size() > kMost) return plan;
  const int last_call = static_cast<int>(plan.calls.size()) - 1;
  for (size_t b = 0; b < buffers.uses.size(); ++b) {  // what lives on stays
    if (buffers.persistent[b] || buffers.carried[b]) {
      buffers.uses[b] = {buffers.uses[b].size, 0, std::max(last_call, kShort)};
    }
  }
  std::vector<Bytes> offsets(buffers.uses.size());
  for_each_place(buffers, plan, [&](int b, Bytes at) { offsets[static_cast<size_t>(b)] = at; });
  Mover(buffers.uses, offsets, plan.arena).run();
  for_each_place(buffers, plan, [&](int b, Bytes& at) { at = offsets[static_cast<size_t>(b)]; });
  return plan;
}

}  // namespace thimble
