#include "plan/bytes/liveness.h"

#include <algorithm>

#include "base/error.h"
#include "graph/updates.h"

namespace thimble {
namespace {

// One copy of a value: made at one call (or present at the start), read until another.
struct Copy {
  ValueId value;
  int made = 0;
  int end = 0;
  int buffer = -1;
};

class Assigner {
 public:
  Assigner(const Graph& graph, const Schedule& schedule, const Costs& costs, Sharing sharing,
           int microbatches)
      : graph_(graph),
        schedule_(schedule),
        costs_(costs),
        sharing_(sharing),
        microbatches_(microbatches),
        last_call_(static_cast<int>(schedule.calls.size()) - 1),
        each_(phase_range(graph, schedule, Phase::per_microbatch)) {}

  Buffers run() {
    find_sources();
    result_.calls.resize(schedule_.calls.size());
    for (size_t s = 0; s < schedule_.calls.size(); ++s) {
      assign_call(static_cast<int>(s), result_.calls[s]);
    }
    find_carried();
    return std::move(result_);
  }

  std::vector<BufferUse> run_for_uses() {
    find_sources();
    CallBuffers call;
    for (size_t s = 0; s < schedule_.calls.size(); ++s) assign_call(static_cast<int>(s), call);
    return std::move(result_.uses);
  }

 private:
  void find_sources() {
    find_copies();
    find_ends();
    result_.sources.assign(graph_.values.size(), -1);
    result_.uses.reserve(copies_.size());
    result_.roles.reserve(copies_.size());
    result_.persistent.reserve(copies_.size());
    for (size_t c = 0; c < source_count_; ++c) {
      copies_[c].buffer = new_buffer(copies_[c]);
      result_.sources[copies_[c].value.at()] = copies_[c].buffer;
    }
  }

  // Which copy every call reads and makes.
  void find_copies() {
    current_.assign(graph_.values.size(), -1);
    first_.reserve(schedule_.calls.size());
    uses_.reserve(schedule_.calls.size() * 4);
    copies_.reserve(graph_.values.size() + schedule_.calls.size());
    for (size_t v = 0; v < graph_.values.size(); ++v) {
      if (!graph_.values[v].producer.valid()) make_copy(make_id<ValueId>(v), 0);
    }
    source_count_ = copies_.size();
    for (size_t s = 0; s < schedule_.calls.size(); ++s) {
      const Node& node = graph_[schedule_.calls[s].node];
      const int now = static_cast<int>(s);
      first_.push_back(uses_.size());
      for (const ValueId input : node.inputs) uses_.push_back(read(input, now));
      for (const ValueId target : node.accumulate) {
        uses_.push_back(target.valid() ? read(target, now) : -1);
      }
      for (const ValueId output : node.outputs) uses_.push_back(make_copy(output, now));
    }
  }

  // The copies a call reads, adds into and makes, in that order.
  int read_copy(size_t call, size_t input) const { return uses_[first_[call] + input]; }
  int target_copy(const Node& node, size_t call, size_t k) const {
    return uses_[first_[call] + node.inputs.size() + k];
  }
  int made_copy(const Node& node, size_t call, size_t k) const {
    return uses_[first_[call] + node.inputs.size() + node.accumulate.size() + k];
  }

  int make_copy(ValueId value, int call) {
    copies_.push_back({value, call, call, -1});
    return current_[value.at()] = static_cast<int>(copies_.size()) - 1;
  }

  int read(ValueId value, int call) {
    const int copy = current_[value.at()];
    if (copy < 0) {
      internal_check(false, fmt::format("call {} reads '{}', which no call before it makes", call,
                                        graph_[value].name));
    }
    copies_[static_cast<size_t>(copy)].end = call;
    return copy;
  }

  void find_ends() {
    for (size_t c = 0; c < copies_.size(); ++c) {
      Copy& copy = copies_[c];
      const Role role = graph_[copy.value].role;
      const bool source = c < source_count_;
      if (source && is_persistent(role)) copy.end = last_call_;
      if (microbatches_ == 1) continue;
      if (source && role == Role::input) {
        // Filled anew before every microbatch, and between its last reader and that nobody's.
        copy.end = std::max(copy.end, each_.begin);
      } else if (copy.made < each_.begin && copy.end >= each_.begin) {
        // Inputs of the loop over micro-batches must outlive the loop.
        copy.end = std::max(copy.end, each_.end - 1);
      }
    }
    for (const ValueId value : graph_.results) {
      const int copy = current_[value.at()];
      internal_check(copy >= 0, "the schedule does not compute a result");
      copies_[static_cast<size_t>(copy)].end = last_call_;
    }
  }

  void assign_call(int s, CallBuffers& buffers) {
    const size_t call = static_cast<size_t>(s);
    const Node& node = graph_[schedule_.calls[call].node];
    buffers.inputs.clear();
    buffers.outputs.clear();
    buffers.inputs.reserve(node.inputs.size());
    buffers.outputs.reserve(node.outputs.size());
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      buffers.inputs.push_back(copies_[static_cast<size_t>(read_copy(call, i))].buffer);
    }
    for (size_t k = 0; k < node.outputs.size(); ++k) {
      Copy& copy = copies_[static_cast<size_t>(made_copy(node, call, k))];
      int buffer = inherited(node, call, k);
      if (buffer < 0) buffer = overwritable(node, buffers, copy, k, s);
      if (buffer < 0) {
        buffer = new_buffer(copy);
      } else {
        BufferUse& use = result_.uses[static_cast<size_t>(buffer)];
        use.last = std::max(use.last, copy.end);
      }
      copy.buffer = buffer;
      buffers.outputs.push_back(buffer);
    }
    const Bytes scratch = costs_.nodes[schedule_.calls[call].node.at()].workspace;
    if (scratch.count > 0) {
      buffers.workspace = add_buffer({scratch, s, s}, Role::workspace, false);
    }
  }

  // The buffer an output must share: of the version before it, or of what it is a view of.
  int inherited(const Node& node, size_t call, size_t k) const {
    int copy = -1;
    for (const Alias& update : updates_of(node)) {
      if (update.output == static_cast<int>(k)) {
        copy = read_copy(call, static_cast<size_t>(update.input));
      }
    }
    if (node.added_into(k).valid()) copy = target_copy(node, call, k);
    if (node.op->view && k == 0) copy = read_copy(call, 0);
    return copy < 0 ? -1 : copies_[static_cast<size_t>(copy)].buffer;
  }

  // The buffer an output may take over: of equal size, read for the last time at this call, and
  // only through inputs that the op lets this output overwrite.
  int overwritable(const Node& node, const CallBuffers& buffers, const Copy& copy, size_t k,
                   int s) const {
    if (sharing_ == Sharing::none) return -1;
    const auto may_overwrite = [&](size_t input) {
      return std::any_of(node.op->in_place.begin(), node.op->in_place.end(), [&](const Alias& a) {
        return a.output == static_cast<int>(k) && a.input == static_cast<int>(input);
      });
    };
    for (const Alias& alias : node.op->in_place) {
      const size_t input = static_cast<size_t>(alias.input);
      if (alias.output != static_cast<int>(k) || input >= buffers.inputs.size()) continue;
      const int buffer = buffers.inputs[input];
      const BufferUse& use = result_.uses[static_cast<size_t>(buffer)];
      if (use.last != s || use.size != graph_[copy.value].type.bytes()) continue;
      if (result_.persistent[static_cast<size_t>(buffer)] || carried(use, s)) continue;
      bool free = std::count(buffers.outputs.begin(), buffers.outputs.end(), buffer) == 0;
      for (size_t i = 0; i < buffers.inputs.size(); ++i) {
        if (buffers.inputs[i] == buffer && !may_overwrite(i)) free = false;
      }
      if (free) return buffer;
    }
    return -1;
  }

  // Whether the next turn of the loop over microbatches needs the bytes as this one found them.
  bool carried(const BufferUse& use, int s) const {
    return microbatches_ > 1 && use.first < each_.begin && each_.begin <= s && s < each_.end;
  }

  void find_carried() {
    result_.carried.assign(result_.uses.size(), false);
    if (microbatches_ == 1) return;
    for (int s = 0; s < each_.begin; ++s) {
      for (const int buffer : result_.calls[static_cast<size_t>(s)].outputs) {
        const size_t b = static_cast<size_t>(buffer);
        result_.carried[b] = !result_.persistent[b] && result_.uses[b].last >= each_.end - 1;
      }
    }
  }

  int new_buffer(const Copy& copy) {
    const Value& value = graph_[copy.value];
    const bool persistent = !value.producer.valid() && is_persistent(value.role);
    return add_buffer({value.type.bytes(), copy.made, copy.end}, value.role, persistent);
  }

  int add_buffer(BufferUse use, Role role, bool persistent) {
    result_.uses.push_back(use);
    result_.roles.push_back(role);
    result_.persistent.push_back(persistent);
    return static_cast<int>(result_.uses.size()) - 1;
  }

  const Graph& graph_;
  const Schedule& schedule_;
  const Costs& costs_;
  const Sharing sharing_;
  const int microbatches_;
  const int last_call_;
  const PhaseRange each_;

  std::vector<Copy> copies_;  // sources first
  size_t source_count_ = 0;
  std::vector<int> current_;   // by value: its latest copy
  std::vector<int> uses_;      // copies, call after call
  std::vector<size_t> first_;  // by call: where its copies begin in uses_
  Buffers result_;
};

}  // namespace

PhaseRange phase_range(const Graph& graph, const Schedule& schedule, Phase phase) {
  PhaseRange range;
  const int count = static_cast<int>(schedule.calls.size());
  const auto phase_of = [&](int s) {
    return graph[schedule.calls[static_cast<size_t>(s)].node].phase;
  };
  while (range.begin < count && phase_of(range.begin) < phase) ++range.begin;
  range.end = range.begin;
  while (range.end < count && phase_of(range.end) == phase) ++range.end;
  return range;
}

Buffers assign_buffers(const Graph& graph, const Schedule& schedule, const Costs& costs,
                       Sharing sharing, int microbatches) {
  return Assigner(graph, schedule, costs, sharing, microbatches).run();
}

std::vector<BufferUse> live_ranges(const Graph& graph, const Schedule& schedule, const Costs& costs,
                                   Sharing sharing, int microbatches) {
  return Assigner(graph, schedule, costs, sharing, microbatches).run_for_uses();
}

}  // namespace thimble
