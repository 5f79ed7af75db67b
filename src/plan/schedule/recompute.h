// Schedules with recomputation (rematerialization): the forward pass runs once, then the backward
// pass. A value that was not kept is recomputed just before the first backward node that reads it.
#pragma once

#include <functional>
#include <vector>

#include "plan/plan.h"

namespace thimble {

// The forward pass as planners see it. Positions count forward nodes in graph order; updates and
// nodes whose results the backward pass cannot use are not in it.
struct ForwardPass {
  explicit ForwardPass(const Graph& graph);

  const Graph& graph;
  std::vector<NodeId> nodes;             // by position
  std::vector<int> position;             // by node: position, or -1
  std::vector<NodeId> backward;          // all other nodes except updates, in order
  std::vector<bool> read_backward;       // by value: read after the forward pass, itself or a view
  std::vector<bool> is_forward;          // by value: made by a forward node
  std::vector<int> last_forward_reader;  // by value: position of its last forward reader, or -1
  // By value: the forward value that owns its bytes (itself, unless it is a view).
  std::vector<ValueId> bytes_of;

  size_t size() const { return nodes.size(); }
  NodeId maker(ValueId value) const { return graph[value].producer; }
  int made_at(ValueId value) const { return position[graph[value].producer.at()]; }
};

// Whether a value may be dropped and recomputed: a forward value, not a view of one that is always
// kept, made by an op that may run twice.
bool can_recompute(const ForwardPass& pass, ValueId value);

// The whole schedule, updates placed: the forward pass once, then every backward node. Just before
// a backward node, the positions that `replay` returns for it are recomputed in that order.
// REQUIRES: each result is there when it is read.
using ReplayBefore = std::function<std::vector<int>(NodeId backward_node)>;
Schedule schedule_replaying(const ForwardPass& pass, const ReplayBefore& replay);

// The decision of a policy: which values stay in memory. Asked only about values that
// can_recompute().
class Retention {
 public:
  virtual ~Retention() = default;
  // Whether a value stays after the forward pass.
  virtual bool stays_after_forward(ValueId value) = 0;
  // Tells that these positions (ascending) have just been recomputed, since backward node `reader`
  // reads some of their results.
  virtual void replayed(const std::vector<int>& replayed, NodeId reader) {
    (void)replayed, (void)reader;
  }
  // Whether a recomputed value stays after `reader`. By default it does, until its last reader.
  virtual bool stays_after_replay(ValueId value) {
    (void)value;
    return true;
  }
};

// The schedule that follows from it. Marks are honoured: `keep` results always stay, `recompute`
// results never do.
Schedule schedule_with(const ForwardPass& pass, Retention& retention);

// Keeps the values marked true (`kept` is by value), and recomputes every other one at most once.
Schedule schedule_keeping(const ForwardPass& pass, const std::vector<bool>& kept);

// Stages: every node of the `per_microbatch` phase except updates, forward nodes first. Missing
// inputs of a stage are recomputed just before it. So a schedule is a choice of the values to drop
// after each stage.
std::vector<NodeId> stages_of(const ForwardPass& pass);
using Drops = std::vector<std::vector<ValueId>>;  // by stage: values that can_recompute()

// Any schedule of the other functions can be written this way, as can one that drops and recomputes
// in the forward pass. The caller has to honour marks.
Schedule schedule_dropping(const ForwardPass& pass, const Drops& drops);
Drops drops_of(const ForwardPass& pass, const Schedule& schedule);
// Keeps every value that is not marked `recompute`: the schedule of all policies that differ in
// their layouts only.
Schedule schedule_without_recompute(const PlanRequest& request);

}  // namespace thimble
