#include "plan/schedule/chain.h"

#include <algorithm>
#include <functional>
#include <queue>

namespace thimble {
namespace {

// Forward values with bytes of their own, and until where forward nodes read those bytes (through
// views, too).
std::vector<int> last_readers(const ForwardPass& pass) {
  std::vector<int> last = pass.last_forward_reader;
  for (size_t v = last.size(); v-- > 0;) {
    const ValueId base = pass.bytes_of[v];
    last[base.at()] = std::max(last[base.at()], last[v]);
  }
  return last;
}

bool owns_bytes(const ForwardPass& pass, size_t v) {
  return pass.is_forward[v] && pass.bytes_of[v].at() == v;
}

// Whether the crossing behind p is below what is around it: not above its left neighbour, below its
// right one, and of equal neighbours the last.
bool is_narrow(const std::vector<Bytes>& crossing, size_t p) {
  const Bytes here = crossing[p];
  if (here.count == 0 || here >= crossing[p + 1]) return false;
  size_t before = p;
  while (before > 0 && crossing[before - 1] == here) --before;
  return before == 0 || crossing[before - 1] > here;
}

// Positions to cut behind, where few bytes cross. In a plain chain the crossing may be as wide everywhere,
// or only shrink. There a cut lies behind each value that crosses alone, is read by the backward pass and
// has a costly op between it and the cut before.
std::vector<int> candidate_cuts(const ForwardPass& pass, const std::vector<Bytes>& crossing) {
  const std::vector<int> last = last_readers(pass);
  std::vector<int> cuts;
  bool costly = false;  // since the last cut
  for (size_t p = 0; p + 1 < crossing.size(); ++p) {
    const Node& node = pass.graph[pass.nodes[p]];
    costly |= node.op->recompute == Recompute::costly;
    const bool alone = std::any_of(node.outputs.begin(), node.outputs.end(), [&](ValueId output) {
      return owns_bytes(pass, output.at()) && last[output.at()] > static_cast<int>(p) &&
             pass.read_backward[output.at()] &&
             align_up(pass.graph[output].type.bytes()) == crossing[p];
    });
    if (!is_narrow(crossing, p) && !(alone && costly)) continue;
    cuts.push_back(static_cast<int>(p));
    costly = false;
  }
  return cuts;
}

// By position: until where everything that crosses behind it goes on crossing.
std::vector<int> crossing_together(const ForwardPass& pass) {
  const std::vector<int> last = last_readers(pass);
  std::priority_queue<int, std::vector<int>, std::greater<>> ends;  // of what crosses
  std::vector<int> together;
  for (size_t p = 0; p < pass.size(); ++p) {
    for (const ValueId output : pass.graph[pass.nodes[p]].outputs) {
      if (owns_bytes(pass, output.at())) ends.push(last[output.at()]);
    }
    while (!ends.empty() && ends.top() <= static_cast<int>(p)) ends.pop();
    together.push_back(ends.empty() ? static_cast<int>(p) : ends.top());
  }
  return together;
}

// Leaves out cuts inside a residual block, where the skip crosses as well as the branch: whatever
// crosses the cut before still does, and soon no more does again.
std::vector<int> without_inner(const ForwardPass& pass, const std::vector<int>& cuts,
                               const std::vector<Bytes>& crossing) {
  constexpr int kSoon = 16;  // nodes
  const std::vector<int> together = crossing_together(pass);
  const auto bytes = [&](int cut) { return crossing[static_cast<size_t>(cut)]; };
  std::vector<int> kept;
  int inner_until = -1;
  for (size_t i = 0; i < cuts.size(); ++i) {
    if (cuts[i] < inner_until) continue;
    kept.push_back(cuts[i]);
    const int end = together[static_cast<size_t>(cuts[i])];
    const auto next = std::lower_bound(cuts.begin(), cuts.end(), end);
    const bool block =
        end - cuts[i] <= kSoon && next != cuts.end() && bytes(*next) <= bytes(cuts[i]);
    inner_until = block ? end : -1;
  }
  return kept;
}

size_t kind_of(const ForwardPass& pass, const Block& block) {
  size_t kind = 1469598103934665603u;
  const auto mix = [&](size_t value) { kind = (kind ^ value) * 1099511628211u; };
  for (int p = block.begin; p < block.end; ++p) {
    Signature signature = signature_of(pass.graph, pass.nodes[static_cast<size_t>(p)]);
    // Where in the sequence a slice is taken, and which random stream is drawn from, change no cost.
    for (const char* name : {"begin", "end", "stream"}) {
      if (signature.attrs.has(name)) signature.attrs.set(name, int64_t{0});
    }
    mix(SignatureHash{}(signature));
    mix(static_cast<size_t>(pass.graph[pass.nodes[static_cast<size_t>(p)]].mark));
  }
  return kind;
}

// The smallest number of blocks after which kinds repeat nearly everywhere; 1 when nothing does.
size_t period_of(const std::vector<Block>& blocks) {
  constexpr size_t kLongest = 64;
  for (size_t period = 1; period <= kLongest && 4 * period <= blocks.size(); ++period) {
    size_t equal = 0;
    for (size_t i = 0; i + period < blocks.size(); ++i) {
      if (blocks[i].kind == blocks[i + period].kind) ++equal;
    }
    if (equal * 10 >= (blocks.size() - period) * 9) return period;
  }
  return 1;
}

void describe(const ForwardPass& pass, const Costs& costs, Block& block) {
  block.made = Bytes(0);
  block.seconds = block.flops = 0;
  for (int p = block.begin; p < block.end; ++p) {
    const NodeId id = pass.nodes[static_cast<size_t>(p)];
    block.seconds += costs.nodes[id.at()].seconds;
    block.flops += costs.nodes[id.at()].flops;
    for (const ValueId output : pass.graph[id].outputs) {
      if (owns_bytes(pass, output.at())) block.made += align_up(pass.graph[output].type.bytes());
    }
  }
  block.kind = kind_of(pass, block);
}

}  // namespace

std::vector<Bytes> crossing_bytes(const ForwardPass& pass) {
  const std::vector<int> last = last_readers(pass);
  std::vector<int64_t> change(pass.size() + 1, 0);
  for (size_t v = 0; v < last.size(); ++v) {
    if (!owns_bytes(pass, v)) continue;
    const int made = pass.made_at(make_id<ValueId>(v));
    if (last[v] <= made) continue;
    const int64_t bytes = align_up(pass.graph.values[v].type.bytes()).count;
    change[static_cast<size_t>(made)] += bytes;
    change[static_cast<size_t>(last[v])] -= bytes;
  }
  std::vector<Bytes> crossing;
  int64_t live = 0;
  for (size_t p = 0; p < pass.size(); ++p) crossing.emplace_back(live += change[p]);
  return crossing;
}

std::vector<Block> cut_into_blocks(const ForwardPass& pass, const Costs& costs) {
  const std::vector<int> last = last_readers(pass);
  const std::vector<Bytes> crossing = crossing_bytes(pass);
  std::vector<Block> blocks;
  const auto cut = [&](const std::vector<int>& ends) {
    blocks.clear();
    int begin = 0;
    for (const int end : ends) {
      blocks.push_back({begin, end});
      begin = end;
    }
    if (begin < static_cast<int>(pass.size()))
      blocks.push_back({begin, static_cast<int>(pass.size())});
    for (Block& block : blocks) describe(pass, costs, block);
  };
  std::vector<int> ends;
  for (const int p : without_inner(pass, candidate_cuts(pass, crossing), crossing))
    ends.push_back(p + 1);
  cut(ends);
  // Cuts inside a repeated unit (the layers of one time step) make blocks too small to be worth it.
  const size_t period = period_of(blocks);
  if (period > 1) {
    std::vector<int> best;
    int64_t least = INT64_MAX;
    for (size_t phase = 0; phase < period; ++phase) {
      std::vector<int> sparse;
      int64_t total = 0;
      for (size_t i = phase; i + 1 < blocks.size(); i += period) {
        sparse.push_back(blocks[i].end);
        total += crossing[static_cast<size_t>(blocks[i].end) - 1].count;
      }
      if (total < least) best = sparse, least = total;
    }
    cut(best);
  }

  // Who enters each block.
  std::vector<size_t> block_of(pass.size());
  for (size_t b = 0; b < blocks.size(); ++b) {
    for (int p = blocks[b].begin; p < blocks[b].end; ++p) block_of[static_cast<size_t>(p)] = b;
  }
  for (size_t v = 0; v < last.size(); ++v) {
    if (!owns_bytes(pass, v)) continue;
    const ValueId value = make_id<ValueId>(v);
    const int made = pass.made_at(value);
    if (last[v] <= made) continue;
    for (size_t b = block_of[static_cast<size_t>(made)] + 1;
         b <= block_of[static_cast<size_t>(last[v])]; ++b) {
      blocks[b].enters.push_back(value);
      blocks[b].entering += align_up(pass.graph.values[v].type.bytes());
    }
  }
  return blocks;
}

}  // namespace thimble
