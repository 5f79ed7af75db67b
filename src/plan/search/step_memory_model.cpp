#include "plan/search/step_memory_model.h"

#include <algorithm>

#include "graph/updates.h"
#include "plan/schedule/place_updates.h"

namespace thimble {
namespace {

Bytes aligned_bytes(const Graph& graph, ValueId value) {
  return align_up(graph[value].type.bytes());
}

// Live ranges of bytes in stages, added up.
class Occupancy {
 public:
  explicit Occupancy(size_t stages) : change_(stages + 1, 0) {}

  void add(int first, int last, Bytes bytes) {  // inclusive
    change_[static_cast<size_t>(first)] += bytes.count;
    change_[static_cast<size_t>(last) + 1] -= bytes.count;
  }

  std::vector<Bytes> by_stage() const {
    std::vector<Bytes> sums;
    int64_t live = 0;
    for (size_t s = 0; s + 1 < change_.size(); ++s) sums.emplace_back(live += change_[s]);
    return sums;
  }

 private:
  std::vector<int64_t> change_;
};

// Values that are neither evictable nor persistent, with their ranges of stages. An output that
// takes over the bytes of a dying value of the same kind continues that one's range.
class FixedValues {
 public:
  // `wanted_until`, by value: a stage up to which replays may read it.
  FixedValues(const ForwardPass& pass, const std::vector<NodeId>& stages,
              const std::vector<int>& evictable_of, const std::vector<int>& wanted_until)
      : graph_(pass.graph),
        unit_of_(evictable_of),
        stage_of_(graph_.nodes.size(), -1),
        last_read_(graph_.values.size(), 0),
        root_(graph_.values.size()),
        range_(graph_.values.size()) {
    for (size_t v = 0; v < root_.size(); ++v) root_[v] = make_id<ValueId>(v);
    for (size_t s = 0; s < stages.size(); ++s) {
      stage_of_[stages[s].at()] = static_cast<int>(s);
      for (const ValueId input : graph_[stages[s]].inputs)
        last_read_[input.at()] = static_cast<int>(s);
    }
    end_ = static_cast<int>(stages.size()) - 1;
    find_ranges();
    for (size_t v = 0; v < range_.size(); ++v) {
      Range& range = range_[root_[v].at()];
      range.last = std::max(range.last, wanted_until[v]);
    }
    range_before_ = range_;
    for (size_t v = 0; v < range_.size(); ++v) {
      if (graph_.values[v].producer.valid()) ++range_before_[v].first;
    }
    share_in_place(stages);
  }

  // Bytes by stage, while its node runs and while replays run in front of it.
  std::vector<Bytes> during() const { return sum(range_); }
  std::vector<Bytes> before() const { return sum(range_before_); }

 private:
  struct Range {
    int first = 1 << 30;
    int last = -1;
  };

  std::vector<Bytes> sum(const std::vector<Range>& ranges) const {
    Occupancy occupancy(static_cast<size_t>(end_) + 1);
    for (size_t v = 0; v < ranges.size(); ++v) {
      const ValueId value = make_id<ValueId>(v);
      if (root_[v] != value || unit_of_[v] >= 0) continue;
      const bool source = !graph_[value].producer.valid();
      if (source && is_persistent(graph_[value].role)) {
        occupancy.add(0, end_, aligned_bytes(graph_, value));
      } else if (ranges[v].first <= ranges[v].last) {
        occupancy.add(ranges[v].first, ranges[v].last, aligned_bytes(graph_, value));
      }
    }
    return occupancy.by_stage();
  }

  // The stage in which a node runs; an update runs right behind the stage that makes its gradient,
  // or that reads what it overwrites for the last time.
  int stage_of(NodeId id) const {
    const int stage = stage_of_[id.at()];
    if (stage >= 0) return stage;
    const Node& node = graph_[id];
    if (node.phase == Phase::prologue) return 0;
    if (node.phase == Phase::epilogue) return end_;
    int made = 0;
    for (const ValueId input : node.inputs) {
      const NodeId producer = graph_[input].producer;
      if (producer.valid()) made = std::max(made, stage_of(producer));
      made = std::max(made, last_read_[input.at()]);
    }
    return made;
  }

  void find_ranges() {
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      const Node& node = graph_.nodes[n];
      const int stage = stage_of(make_id<NodeId>(n));
      const auto touch = [&](ValueId value) {
        Range& range = range_[root_[value.at()].at()];
        range.first = std::min(range.first, stage);
        range.last = std::max(range.last, stage);
      };
      for (const ValueId input : node.inputs) touch(input);
      for (size_t k = 0; k < node.outputs.size(); ++k) {
        const ValueId output = node.outputs[k];
        if (node.op->view && k == 0) root_[output.at()] = root_[node.inputs[0].at()];
        for (const Alias& update : updates_of(node)) {
          if (update.output != static_cast<int>(k)) continue;
          root_[output.at()] = root_[node.inputs[static_cast<size_t>(update.input)].at()];
        }
        if (node.added_into(k).valid()) root_[output.at()] = root_[node.added_into(k).at()];
        touch(output);
      }
    }
    for (size_t v = 0; v < range_.size(); ++v) {
      if (!graph_.values[v].producer.valid()) range_[v].first = 0;  // the batch and other inputs
    }
    for (const ValueId result : graph_.results) range_[root_[result.at()].at()].last = end_;
  }

  void share_in_place(const std::vector<NodeId>& stages) {
    for (size_t s = 0; s < stages.size(); ++s) {
      const Node& node = graph_[stages[s]];
      std::vector<int> placed;  // outputs
      for (const Alias& alias : node.op->in_place) {
        if (static_cast<size_t>(alias.input) >= node.inputs.size()) continue;
        if (std::find(placed.begin(), placed.end(), alias.output) != placed.end()) continue;
        const ValueId input = root_[node.inputs[static_cast<size_t>(alias.input)].at()];
        const ValueId output = node.outputs[static_cast<size_t>(alias.output)];
        if (root_[output.at()] != output || unit_of_[output.at()] >= 0) continue;
        if (unit_of_[input.at()] >= 0 || !graph_[input].producer.valid()) continue;
        if (graph_[input].type.bytes() != graph_[output].type.bytes()) continue;
        if (range_[input.at()].last != static_cast<int>(s)) continue;
        range_[input.at()].last = static_cast<int>(s) - 1;
        placed.push_back(alias.output);
      }
    }
  }

  const Graph& graph_;
  const std::vector<int>& unit_of_;
  std::vector<int> stage_of_;        // by node, or -1
  std::vector<int> last_read_;       // by value: the last stage that reads it
  std::vector<ValueId> root_;        // by value: whose bytes it has
  std::vector<Range> range_;         // by root: stages while whose node runs it is live
  std::vector<Range> range_before_;  // by root: stages in front of which it is
  int end_ = 0;
};

}  // namespace

StepMemoryModel::StepMemoryModel(const ForwardPass& pass, const Costs& costs)
    : stages(stages_of(pass)), forward(pass.size()) {
  const Graph& graph = pass.graph;
  std::vector<int> evictable_of(graph.values.size(),
                                -1);  // by value; of a view, its bytes' evictable value
  for (const NodeId node : pass.nodes) {
    for (const ValueId output : graph[node].outputs) {
      const ValueId root = pass.bytes_of[output.at()];
      if (root == output && can_recompute(pass, output)) {
        evictable_of[output.at()] = static_cast<int>(evictables.size());
        evictables.push_back(output);
        bytes.push_back(aligned_bytes(graph, output));
        maker.push_back(pass.position[node.at()]);
        never_stays.push_back(graph[node].mark == Mark::recompute);
      } else if (pass.is_forward[root.at()]) {
        evictable_of[output.at()] = evictable_of[root.at()];
      }
    }
  }
  uses.resize(evictables.size());
  for (size_t s = 0; s < stages.size(); ++s) {
    const Node& node = graph[stages[s]];
    EvictableUse call;
    const auto evictable = [&](ValueId value) { return evictable_of[value.at()]; };
    const auto has = [](const std::vector<int>& list, int u) {
      return std::find(list.begin(), list.end(), u) != list.end();
    };
    for (const ValueId input : node.inputs) {
      if (evictable(input) < 0 || has(call.reads, evictable(input))) continue;
      call.reads.push_back(evictable(input));
      uses[static_cast<size_t>(evictable(input))].push_back(static_cast<int>(s));
    }
    for (const ValueId output : node.outputs) {
      if (pass.is_forward[output.at()] && pass.bytes_of[output.at()] != output) continue;  // a view
      if (evictable(output) >= 0) {
        call.makes.push_back(evictable(output));
      } else {
        call.passing += aligned_bytes(graph, output);
      }
    }
    for (const Alias& alias : node.op->in_place) {
      if (static_cast<size_t>(alias.input) >= node.inputs.size()) continue;
      const ValueId input = node.inputs[static_cast<size_t>(alias.input)];
      const ValueId output = node.outputs[static_cast<size_t>(alias.output)];
      if (evictable(input) < 0 || node.added_into(static_cast<size_t>(alias.output)).valid())
        continue;
      if (graph[input].type.bytes() != graph[output].type.bytes()) continue;
      call.overwrites.push_back({evictable(input), aligned_bytes(graph, input)});
      break;
    }
    call.scratch = align_up(costs.nodes[stages[s].at()].workspace);
    call.seconds = costs.nodes[stages[s].at()].seconds;
    calls.push_back(std::move(call));
  }
  // A value is useful as long as one that can be recomputed from it is.
  last_use.assign(evictables.size(), -1);
  for (size_t u = evictables.size(); u-- > 0;) {
    for (const int stage : uses[u]) {
      last_use[u] = std::max(last_use[u], stage);
      if (static_cast<size_t>(stage) >= forward) continue;
      for (const int made : calls[static_cast<size_t>(stage)].makes) {
        last_use[u] = std::max(last_use[u], last_use[static_cast<size_t>(made)]);
      }
    }
  }
  std::vector<int> wanted_until(graph.values.size(), -1);
  for (size_t s = 0; s < forward; ++s) {
    for (const int made : calls[s].makes) {
      for (const ValueId input : graph[stages[s]].inputs) {
        int& until = wanted_until[input.at()];
        until = std::max(until, last_use[static_cast<size_t>(made)]);
      }
    }
  }
  const FixedValues fixed(pass, stages, evictable_of, wanted_until);
  always = fixed.during();
  always_before = fixed.before();
}

}  // namespace thimble
