#include "plan/search/block_options.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace thimble {
namespace {

// By output of the block's nodes, counted from its first (see inner_values).
using Outputs = std::vector<char>;

class BlockStudy {
 public:
  BlockStudy(const ForwardPass& pass, const Costs& costs, const std::vector<Block>& blocks,
             size_t index, const SearchLimits& limits)
      : pass_(pass),
        limits_(limits),
        block_(blocks[index]),
        inner_(inner_values(pass, block_)),
        leaves_(inner_.size(), false),
        needed_(inner_.size(), false) {
    list_nodes(costs);
    if (index + 1 < blocks.size()) {
      for (const ValueId value : blocks[index + 1].enters) {
        if (const int i = output_of(value); i >= 0) leaves_[at(i)] = true;
      }
      leaving_bytes_ = blocks[index + 1].entering;
    }
    for (const NodeId id : pass.backward) {
      const NodeId forward = pass.graph[id].differentiates;
      const int position = forward.valid() ? pass.position[forward.at()] : -1;
      if (position < block_.begin || position >= block_.end) continue;
      for (const ValueId input : pass.graph[id].inputs) {
        if (const int i = output_of(input); i >= 0) needed_[at(i)] = true;
      }
    }
    sort_values();
  }

  std::vector<BlockOption> run() {
    std::vector<BlockOption> options;
    const size_t subsets = size_t{1} << majors_.size();
    for (size_t mask = 0; mask < subsets; ++mask) options.push_back(evaluate(mask));
    return pareto(std::move(options));
  }

 private:
  struct InnerNode {
    double seconds = 0;
    bool costly = false;
    std::vector<int> reads;  // outputs of nodes before it
    int begin = 0, end = 0;  // its own outputs
  };

  static size_t at(int i) { return static_cast<size_t>(i); }

  // -1: it is made elsewhere.
  int output_of(ValueId value) const {
    if (!pass_.is_forward[value.at()]) return -1;
    const int position = pass_.made_at(value);
    if (position < block_.begin || position >= block_.end) return -1;
    int i = nodes_[at(position - block_.begin)].begin;
    while (inner_[at(i)] != value) ++i;
    return i;
  }

  void list_nodes(const Costs& costs) {
    for (int p = block_.begin; p < block_.end; ++p) {
      const NodeId id = pass_.nodes[at(p)];
      const Node& node = pass_.graph[id];
      const int begin = nodes_.empty() ? 0 : nodes_.back().end;
      nodes_.push_back({.seconds = costs.nodes[id.at()].seconds,
                        .costly = node.op->recompute == Recompute::costly,
                        .reads = {},
                        .begin = begin,
                        .end = begin + static_cast<int>(node.outputs.size())});
      for (const ValueId input : node.inputs) {
        if (const int i = output_of(input); i >= 0) nodes_.back().reads.push_back(i);
      }
    }
  }

  // Which inner values are worth a decision: read by the backward pass, large, not crossing the
  // cut. The small ones (statistics, indices) are always kept; beyond the largest few, too.
  void sort_values() {
    std::vector<std::pair<Bytes, int>> candidates;
    Bytes largest;
    for (size_t i = 0; i < inner_.size(); ++i) {
      const ValueId value = inner_[i];
      if (!pass_.read_backward[value.at()] || leaves_[i] || !can_recompute(pass_, value)) continue;
      if (pass_.bytes_of[value.at()] != value) continue;
      const Bytes bytes = align_up(pass_.graph[value].type.bytes());
      candidates.emplace_back(bytes, static_cast<int>(i));
      largest = std::max(largest, bytes);
    }
    std::stable_sort(candidates.begin(), candidates.end(),
                     [](const auto& a, const auto& b) { return a.first > b.first; });
    for (const auto& [bytes, i] : candidates) {
      const bool small = bytes.count * limits_.minor_share < largest.count;
      (small || majors_.size() >= limits_.majors ? minors_ : majors_).push_back(i);
    }
  }

  Bytes bytes(int i) const { return align_up(pass_.graph[inner_[at(i)]].type.bytes()); }

  // By node, whether it must run to have `targets`, given what is available inside the block.
  const std::vector<char>& closure(const Outputs& available, const Outputs& targets) {
    wanted_ = targets;
    runs_.assign(nodes_.size(), false);
    for (size_t n = nodes_.size(); n-- > 0;) {
      const InnerNode& node = nodes_[n];
      for (int i = node.begin; i < node.end; ++i) {
        if (wanted_[at(i)] && !available[at(i)]) runs_[n] = true;
      }
      if (!runs_[n]) continue;
      for (const int i : node.reads) wanted_[at(i)] = true;
    }
    return runs_;
  }

  double seconds(const std::vector<char>& runs) const {
    double sum = 0;
    for (size_t n = 0; n < runs.size(); ++n) {
      if (runs[n]) sum += nodes_[n].seconds;
    }
    return sum;
  }

  // The time of what the block's backward pass recomputes, and its memory.
  std::pair<double, Bytes> backward(const Outputs& available) {
    Bytes room = leaving_bytes_ + block_.entering;  // the gradients on both sides
    for (const int i : majors_) {
      if (needed_[at(i)] && !available[at(i)]) room += bytes(i);
    }
    return {seconds(closure(available, needed_)), room};
  }

  BlockOption evaluate(size_t mask) {
    BlockOption option;
    Outputs available(inner_.size(), false);
    const auto keep = [&](int i) {
      option.kept.push_back(i);
      option.kept_bytes += bytes(i);
      available[at(i)] = true;
    };
    for (const int i : minors_) keep(i);
    for (size_t m = 0; m < majors_.size(); ++m) {
      if (((mask >> m) & 1u) != 0) keep(majors_[m]);
    }
    std::sort(option.kept.begin(), option.kept.end());
    // Not run again: then a segment ends here, and what leaves the block is kept.
    const auto with_leaving = [&](Outputs outputs) {
      for (size_t i = 0; i < outputs.size(); ++i) {
        if (leaves_[i]) outputs[i] = true;
      }
      return outputs;
    };
    std::tie(option.alone_seconds, option.alone_bytes) = backward(with_leaving(available));

    const std::vector<char>& replay = closure(available, leaves_);
    option.replay_seconds = seconds(replay);
    for (size_t n = 0; n < nodes_.size(); ++n) {
      if (!replay[n] || !nodes_[n].costly) continue;
      for (int i = nodes_[n].begin; i < nodes_[n].end; ++i) {
        if (available[at(i)] || !pass_.read_backward[inner_[at(i)].at()]) continue;
        available[at(i)] = true;
        option.replay_bytes += bytes(i);
      }
    }
    std::tie(option.after_replay_seconds, option.after_replay_bytes) =
        backward(with_leaving(available));
    return option;
  }

  static std::vector<BlockOption> pareto(std::vector<BlockOption> options) {
    const auto cost = [](const BlockOption& o) {
      return o.replay_seconds + o.after_replay_seconds;
    };
    std::stable_sort(options.begin(), options.end(), [&](const auto& a, const auto& b) {
      return std::pair(a.kept_bytes, cost(a)) < std::pair(b.kept_bytes, cost(b));
    });
    std::vector<BlockOption> best;
    double least = 1e300;
    double least_alone = 1e300;
    for (BlockOption& option : options) {
      if (cost(option) >= least && option.alone_seconds >= least_alone) continue;
      least = std::min(least, cost(option));
      least_alone = std::min(least_alone, option.alone_seconds);
      best.push_back(std::move(option));
    }
    return best;
  }

  const ForwardPass& pass_;
  const SearchLimits& limits_;
  const Block& block_;
  const std::vector<ValueId> inner_;
  std::vector<InnerNode> nodes_;
  Outputs leaves_;                    // those crossing the cut behind the block
  Bytes leaving_bytes_;               // of everything crossing it
  Outputs needed_;                    // those that its backward pass reads
  std::vector<int> majors_, minors_;  // outputs
  Outputs wanted_;                    // scratch of closure()
  std::vector<char> runs_;
};

}  // namespace

std::vector<ValueId> inner_values(const ForwardPass& pass, const Block& block) {
  std::vector<ValueId> values;
  for (int p = block.begin; p < block.end; ++p) {
    const auto& outputs = pass.graph[pass.nodes[static_cast<size_t>(p)]].outputs;
    values.insert(values.end(), outputs.begin(), outputs.end());
  }
  return values;
}

std::vector<BlockOption> block_options(const ForwardPass& pass, const Costs& costs,
                                       const std::vector<Block>& blocks, size_t index,
                                       const SearchLimits& limits) {
  return BlockStudy(pass, costs, blocks, index, limits).run();
}

}  // namespace thimble
