#include "plan/bytes/least_bytes.h"

#include <algorithm>

#include "graph/updates.h"
#include "plan/schedule/place_updates.h"
#include "plan/schedule/recompute.h"

namespace thimble {
namespace {

class Bound {
 public:
  Bound(const Graph& graph, const Costs& costs)
      : graph_(graph),
        costs_(costs),
        pass_(graph),
        stages_(stages_of(pass_)),
        owner_(bytes_owners(graph)),
        stage_of_(graph.nodes.size(), -1),
        kind_(graph.values.size(), Kind::transient) {
    for (size_t s = 0; s < stages_.size(); ++s) stage_of_[stages_[s].at()] = static_cast<int>(s);
    sort_values();
  }

  LeastBytes run() {
    const std::vector<int64_t> through = live_through();
    Bytes call, most;
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      const NodeId id = make_id<NodeId>(n);
      if (graph_.nodes[n].op->view) continue;
      const Bytes alone = needs(id, [](ValueId) { return true; });
      call = std::max(call, alone);
      raise(most, alone, id);
      const int stage = stage_of_[n];
      if (stage < 0) continue;
      const Bytes passing(through[static_cast<size_t>(stage)]);
      const Bytes own = needs(
          id, [&](ValueId value) { return kind_[value.at()] != Kind::fixed || makes(id, value); });
      raise(most, passing + own, id);
      if (const Bytes together = last_input_of(id); together.count > 0) raise(most, together, id);
    }
    found_.largest_call = found_.persistent + found_.carried + call;
    found_.all = found_.persistent + found_.carried + most;
    return found_;
  }

 private:
  enum class Kind : uint8_t {
    transient,  // may be recomputed
    fixed,      // there from its making to its last reader
    stays,      // persistent, or carried
  };

  Bytes size(ValueId value) const { return align_up(graph_[value].type.bytes()); }
  ValueId owner(ValueId value) const { return owner_[value.at()]; }

  void raise(Bytes& most, Bytes bytes, NodeId at) {
    if (bytes <= most) return;
    most = bytes;
    found_.at = at;
  }

  void sort_values() {
    for (size_t v = 0; v < kind_.size(); ++v) {
      const ValueId value = make_id<ValueId>(v);
      const Value& made = graph_.values[v];
      if (owner(value) != value) continue;
      if (!made.producer.valid()) {
        kind_[v] = is_persistent(made.role) ? Kind::stays : Kind::fixed;
        if (kind_[v] == Kind::stays) found_.persistent += size(value);
      } else if (graph_[made.producer].phase == Phase::prologue) {
        kind_[v] = Kind::stays;
        found_.carried += size(value);
      } else if (stage_of_[made.producer.at()] >= 0 && !can_recompute(pass_, value)) {
        kind_[v] = Kind::fixed;
      }
    }
  }

  // By stage: bytes of fixed values that were made before it and are read there or later.
  std::vector<int64_t> live_through() const {
    const int last_stage = static_cast<int>(stages_.size()) - 1;
    std::vector<int> made(kind_.size(), -1), last(kind_.size(), -1);
    std::vector<int> last_read(kind_.size(), -1);  // by owner, by stages
    const auto read = [&](ValueId value, int stage) {
      int& until = last_read[owner(value).at()];
      until = std::max(until, stage);
    };
    for (int s = last_stage; s >= 0; --s) {
      const Node& node = graph_[stages_[static_cast<size_t>(s)]];
      for (const ValueId input : node.inputs) read(input, s);
      for (const ValueId target : node.accumulate) {
        if (target.valid()) read(target, s);
      }
      for (const ValueId output : node.outputs) {
        if (owner(output) == output) made[output.at()] = s;
      }
    }
    last = last_read;
    // An update waits for the last reader of what it overwrites; in `end`, for all stages.
    for (const Node& node : graph_.nodes) {
      if (!is_update(node) || node.phase == Phase::prologue) continue;
      int until = node.phase == Phase::epilogue ? last_stage : -1;
      for (const Alias& update : updates_of(node)) {
        until =
            std::max(until, last_read[owner(node.inputs[static_cast<size_t>(update.input)]).at()]);
      }
      for (const ValueId input : node.inputs) {
        int& live = last[owner(input).at()];
        live = std::max(live, until);
      }
    }
    std::vector<int64_t> change(stages_.size() + 1, 0);
    for (size_t v = 0; v < kind_.size(); ++v) {
      if (kind_[v] != Kind::fixed || last[v] <= made[v]) continue;
      const int64_t bytes = size(make_id<ValueId>(v)).count;
      change[static_cast<size_t>(made[v] + 1)] += bytes;
      change[static_cast<size_t>(last[v] + 1)] -= bytes;
    }
    for (size_t s = 1; s < change.size(); ++s) change[s] += change[s - 1];
    return change;
  }

  bool makes(NodeId id, ValueId value) const {
    const auto& outputs = graph_[id].outputs;
    return std::find(outputs.begin(), outputs.end(), value) != outputs.end();
  }

  // Whether an output may lie where an input lay.
  bool may_overwrite(const Node& node, size_t k) const {
    const auto is_it = [&](const Alias& alias) { return alias.output == static_cast<int>(k); };
    return std::ranges::any_of(node.op->in_place, is_it) ||
           std::ranges::any_of(node.op->updates, is_it);
  }

  // Values that lie somewhere while the node runs, each once: what it reads, and what it makes and
  // overwrites nothing with.
  void gather(NodeId id, std::vector<ValueId>& values) const {
    const Node& node = graph_[id];
    for (const ValueId input : node.inputs) values.push_back(owner(input));
    for (size_t k = 0; k < node.outputs.size(); ++k) {
      const ValueId output = node.outputs[k];
      if (owner(output) == output && !may_overwrite(node, k)) values.push_back(output);
    }
  }

  template <class Counts>
  Bytes sum_of(std::vector<ValueId>& values, const Counts& counts) const {
    std::sort(values.begin(), values.end());
    values.erase(std::unique(values.begin(), values.end()), values.end());
    Bytes sum;
    for (const ValueId value : values) {
      if (kind_[value.at()] != Kind::stays && counts(value)) sum += size(value);
    }
    return sum;
  }

  template <class Counts>
  Bytes needs(NodeId id, const Counts& counts) {
    values_.clear();
    gather(id, values_);
    return align_up(costs_.nodes[id.at()].workspace) + sum_of(values_, counts);
  }

  // Live bytes when the last of its inputs that may be recomputed is made: the least of any order.
  Bytes last_input_of(NodeId id) {
    std::vector<ValueId> inputs;
    for (const ValueId input : graph_[id].inputs) {
      if (kind_[owner(input).at()] == Kind::transient) inputs.push_back(owner(input));
    }
    std::sort(inputs.begin(), inputs.end());
    inputs.erase(std::unique(inputs.begin(), inputs.end()), inputs.end());
    constexpr size_t kMost = 8;  // inputs: beyond, one call by itself says enough
    if (inputs.size() < 2 || inputs.size() > kMost) return {};
    Bytes least(INT64_MAX);
    for (const ValueId last : inputs) {
      const NodeId maker = graph_[last].producer;
      values_.clear();
      gather(maker, values_);
      for (const ValueId other : inputs) {
        if (other != last) values_.push_back(other);
      }
      // Gradients and the like may not be there yet.
      const auto counts = [&](ValueId value) { return kind_[value.at()] == Kind::transient; };
      least =
          std::min(least, align_up(costs_.nodes[maker.at()].workspace) + sum_of(values_, counts));
    }
    return least;
  }

  const Graph& graph_;
  const Costs& costs_;
  const ForwardPass pass_;
  const std::vector<NodeId> stages_;
  const std::vector<ValueId> owner_;
  std::vector<int> stage_of_;  // by node, or -1
  std::vector<Kind> kind_;     // by owner
  LeastBytes found_;
  std::vector<ValueId> values_;  // scratch
};

}  // namespace

std::vector<ValueId> bytes_owners(const Graph& graph) {
  const std::vector<ValueId> previous = previous_versions(graph);
  std::vector<ValueId> owner(graph.values.size());
  for (size_t v = 0; v < owner.size(); ++v) {
    if (!graph.values[v].producer.valid()) owner[v] = make_id<ValueId>(v);
  }
  for (const Node& node : graph.nodes) {
    for (size_t k = 0; k < node.outputs.size(); ++k) {
      const ValueId output = node.outputs[k];
      const ValueId before = node.op->view && k == 0 ? node.inputs[0] : previous[output.at()];
      owner[output.at()] = before.valid() ? owner[before.at()] : output;
    }
  }
  return owner;
}

LeastBytes least_bytes(const Graph& graph, const Costs& costs) { return Bound(graph, costs).run(); }

}  // namespace thimble
