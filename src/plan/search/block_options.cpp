#include "plan/search/block_options.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

namespace thimble {
namespace {

using ValueSet = std::unordered_set<ValueId>;

class BlockStudy {
 public:
  BlockStudy(const ForwardPass& pass, const Costs& costs, const std::vector<Block>& blocks,
             size_t index)
      : pass_(pass), costs_(costs), block_(blocks[index]), inner_(inner_values(pass, block_)) {
    if (index + 1 < blocks.size()) {
      for (const ValueId value : blocks[index + 1].enters) {
        if (made_here(value)) leaving_.push_back(value);
      }
      leaving_bytes_ = blocks[index + 1].entering;
    }
    for (const NodeId id : pass.backward) {
      const NodeId forward = pass.graph[id].differentiates;
      const int at = forward.valid() ? pass.position[forward.at()] : -1;
      if (at < block_.begin || at >= block_.end) continue;
      for (const ValueId input : pass.graph[id].inputs) {
        if (pass.is_forward[input.at()]) needed_.insert(input);
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
  static constexpr size_t kMostMajors = 10;

  bool made_here(ValueId value) const {
    const int at = pass_.made_at(value);
    return at >= block_.begin && at < block_.end;
  }

  // Which inner values are worth a decision: read by the backward pass, large, not crossing the
  // cut. The small ones (statistics, indices) are always kept; beyond the largest few, too.
  void sort_values() {
    std::vector<std::pair<Bytes, int>> candidates;
    Bytes largest;
    for (size_t i = 0; i < inner_.size(); ++i) {
      const ValueId value = inner_[i];
      const bool crosses = std::find(leaving_.begin(), leaving_.end(), value) != leaving_.end();
      if (!pass_.read_backward[value.at()] || crosses || !can_recompute(pass_, value)) continue;
      if (pass_.bytes_of[value.at()] != value) continue;
      const Bytes bytes = align_up(pass_.graph[value].type.bytes());
      candidates.emplace_back(bytes, static_cast<int>(i));
      largest = std::max(largest, bytes);
    }
    std::stable_sort(candidates.begin(), candidates.end(),
                     [](const auto& a, const auto& b) { return a.first > b.first; });
    for (const auto& [bytes, i] : candidates) {
      const bool small = bytes.count * 32 < largest.count;
      (small || majors_.size() >= kMostMajors ? minors_ : majors_).push_back(i);
    }
  }

  ValueId value(int i) const { return inner_[static_cast<size_t>(i)]; }
  Bytes bytes(int i) const { return align_up(pass_.graph[value(i)].type.bytes()); }

  // Positions that must run to have `targets`, given what is available inside the block.
  std::vector<int> closure(const ValueSet& available, const std::vector<ValueId>& targets) const {
    std::vector<int> positions;
    std::unordered_set<int> seen;
    std::vector<ValueId> todo = targets;
    while (!todo.empty()) {
      const ValueId next = todo.back();
      todo.pop_back();
      if (!pass_.is_forward[next.at()] || !made_here(next) || available.count(next) != 0) continue;
      const int at = pass_.made_at(next);
      if (!seen.insert(at).second) continue;
      positions.push_back(at);
      const Node& node = pass_.graph[pass_.nodes[static_cast<size_t>(at)]];
      todo.insert(todo.end(), node.inputs.begin(), node.inputs.end());
    }
    return positions;
  }

  double seconds(const std::vector<int>& positions) const {
    double sum = 0;
    for (const int at : positions) {
      sum += costs_.nodes[pass_.nodes[static_cast<size_t>(at)].at()].seconds;
    }
    return sum;
  }

  // What the backward pass of the block computes again, and the room for it.
  std::pair<double, Bytes> backward(const ValueSet& available) const {
    const std::vector<ValueId> targets(needed_.begin(), needed_.end());
    const std::vector<int> positions = closure(available, targets);
    Bytes room = leaving_bytes_ + block_.entering;  // the gradients on both sides
    for (const int i : majors_) {
      if (needed_.count(value(i)) != 0 && available.count(value(i)) == 0) room += bytes(i);
    }
    return {seconds(positions), room};
  }

  BlockOption evaluate(size_t mask) const {
    BlockOption option;
    ValueSet available;
    const auto keep = [&](int i) {
      option.kept.push_back(i);
      option.kept_bytes += bytes(i);
      available.insert(value(i));
    };
    for (const int i : minors_) keep(i);
    for (size_t m = 0; m < majors_.size(); ++m) {
      if (((mask >> m) & 1u) != 0) keep(majors_[m]);
    }
    std::sort(option.kept.begin(), option.kept.end());
    // Not run again: then a segment ends here, and what leaves the block is kept.
    ValueSet with_leaving = available;
    with_leaving.insert(leaving_.begin(), leaving_.end());
    std::tie(option.alone_seconds, option.alone_bytes) = backward(with_leaving);

    const std::vector<int> replay = closure(available, leaving_);
    option.replay_seconds = seconds(replay);
    for (const int at : replay) {
      const Node& node = pass_.graph[pass_.nodes[static_cast<size_t>(at)]];
      if (node.op->recompute != Recompute::costly) continue;
      for (const ValueId output : node.outputs) {
        if (!pass_.read_backward[output.at()]) continue;
        if (available.insert(output).second) {
          option.replay_bytes += align_up(pass_.graph[output].type.bytes());
        }
      }
    }
    for (const ValueId output : leaving_) available.insert(output);
    std::tie(option.after_replay_seconds, option.after_replay_bytes) = backward(available);
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
  const Costs& costs_;
  const Block& block_;
  std::vector<ValueId> inner_;
  std::vector<ValueId> leaving_;      // made here, crossing the cut behind the block
  Bytes leaving_bytes_;               // everything crossing it
  ValueSet needed_;                   // forward values its backward pass reads
  std::vector<int> majors_, minors_;  // indices into inner_
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
                                       const std::vector<Block>& blocks, size_t index) {
  return BlockStudy(pass, costs, blocks, index).run();
}

}  // namespace thimble
