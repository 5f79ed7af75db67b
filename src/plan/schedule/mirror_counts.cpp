#include "plan/schedule/mirror_counts.h"

#include <algorithm>
#include <limits>
#include <set>

namespace thimble {
namespace {

void make_possible(const ForwardPass& pass, MirrorCounts& counts) {
  for (const NodeId id : pass.nodes) {
    const Node& node = pass.graph[id];
    for (const ValueId output : node.outputs) {
      int& count = counts[output.at()];
      if (!can_recompute(pass, output))
        count = 0;
      else if (node.mark == Mark::recompute)
        count = std::max(count, 1);
    }
    if (!node.op->view) continue;
    const ValueId shown = node.inputs[0];
    counts[node.outputs[0].at()] = pass.is_forward[shown.at()] ? counts[shown.at()] : 0;
  }
}

// Which copies have been made so far, and which a gradient still lacks.
class Mirror {
 public:
  Mirror(const ForwardPass& pass, const MirrorCounts& counts)
      : pass_(pass), counts_(counts), made_(pass.size(), 0) {}

  // Positions to run again just before `reader`.
  std::vector<int> before(NodeId reader) {
    want_inputs(reader, std::numeric_limits<int>::max());
    while (!open_.empty()) {
      const auto [copy, at] = open_.back();
      open_.pop_back();
      want_inputs(pass_.nodes[static_cast<size_t>(at)], copy);
    }
    std::vector<int> positions;
    for (const auto& [copy, at] : wanted_) {
      made_[static_cast<size_t>(at)] = copy;
      positions.push_back(at);
    }
    wanted_.clear();
    return positions;
  }

 private:
  // The inputs of copy `copy` of the node. Copies are equal to the bit, so a later one will do as well.
  void want_inputs(NodeId node, int copy) {
    for (const ValueId input : pass_.graph[node].inputs) {
      if (!pass_.is_forward[input.at()]) continue;
      const int read = std::min(copy, counts_[input.at()]);
      const int at = pass_.made_at(input);
      if (made_[static_cast<size_t>(at)] >= read) continue;
      if (wanted_.emplace(read, at).second) open_.emplace_back(read, at);
    }
  }

  const ForwardPass& pass_;
  const MirrorCounts& counts_;
  std::vector<int> made_;                  // by position: the latest copy
  std::set<std::pair<int, int>> wanted_;   // (copy, position): in the order in which they are run
  std::vector<std::pair<int, int>> open_;  // those of which the inputs have not been looked at
};

}  // namespace

Schedule schedule_mirrored(const ForwardPass& pass, MirrorCounts counts) {
  make_possible(pass, counts);
  Mirror mirror(pass, counts);
  return schedule_replaying(pass, [&](NodeId reader) { return mirror.before(reader); });
}

MirrorCounts mirror_segments(const ForwardPass& pass, const std::vector<Block>& blocks,
                             const std::vector<std::vector<size_t>>& kept) {
  MirrorCounts counts(pass.graph.values.size(), static_cast<int>(kept.size()));
  for (size_t count = kept.size(); count-- > 0;) {
    for (const size_t block : kept[count]) {
      for (const ValueId value : blocks[block].enters) counts[value.at()] = static_cast<int>(count);
    }
  }
  return counts;
}

void mirror_cheap(const ForwardPass& pass, MirrorCounts& counts) {
  constexpr int64_t kSmall = 16;  // an extra is at most this part of what it is made from
  const int around = counts.empty() ? 0 : *std::max_element(counts.begin(), counts.end());
  // By value: there when the gradients come, or made from what is there by cheap ops alone.
  std::vector<bool> at_hand(counts.size());
  for (size_t v = 0; v < counts.size(); ++v) at_hand[v] = !pass.is_forward[v];
  for (const NodeId id : pass.nodes) {
    const Node& node = pass.graph[id];
    const bool cheap = node.op->recompute == Recompute::cheap;
    const bool from_hand = std::all_of(node.inputs.begin(), node.inputs.end(),
                                       [&](ValueId input) { return at_hand[input.at()]; });
    for (const ValueId output : node.outputs) {
      const bool kept = counts[output.at()] < around;
      const bool small = !node.inputs.empty() && !node.op->view &&
                         pass.graph[output].type.bytes().count * kSmall <=
                             pass.graph[node.inputs[0]].type.bytes().count;
      at_hand[output.at()] = cheap || kept || pass.read_backward[output.at()];
      if (cheap && from_hand && !kept && !small) ++counts[output.at()];
    }
  }
}

}  // namespace thimble
