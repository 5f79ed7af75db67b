// A training step as the keep-or-recompute problem: tasks in order, the values they read and make,
// and what each costs. It is what both judges (integer_program, exhaustive) work on, and it states
// the planner's own memory model:
//
//   - a task's step holds everything present before it, its results and its scratch;
//   - a result may take over the bytes of an equally large value that the task reads, where the op
//     allows it (or adds into it) and nobody reads that value's copy later: it is counted once;
//   - Sizes are rounded up as in the arena, and persistent values are a constant. Inputs are there
//     from the first step to their last reader and cannot be recomputed.
//   - Forward nodes may run again unless their op says never. Backward nodes run once.
//   - A view is no task: reading it is reading its base.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/plan.h"

namespace thimble {

struct Problem {
  struct Takeover {
    int from = 0, to = 0;  // values; the task reads `from` and makes `to`
  };
  struct Task {
    NodeId node;
    std::vector<NodeId> views;      // of its results; they are shown anew whenever it runs
    std::vector<int> reads, makes;  // values, each once
    std::vector<Takeover> takeovers;
    double seconds = 0;
    int64_t scratch = 0;
    bool repeatable = false;
    // The last task whose first run may profit from running this one again; -1: none.
    int useful_until = -1;
  };
  struct Value {
    int64_t bytes = 0;
    int maker = -1;  // -1: present when the step begins
    std::vector<int> readers;
    bool result = false;    // must be there at the end
    int needed_until = -1;  // likewise the last task that may profit from its presence
  };

  std::vector<Task> tasks;    // in the graph's order
  std::vector<Value> values;  // all but persistent ones and views
  std::vector<NodeId> source_views;
  int64_t persistent = 0;   // bytes that are always there
  double base_seconds = 0;  // every task once

  int size() const { return static_cast<int>(tasks.size()); }
};

// REQUIRES: a graph of the `each` phase without updates.
Problem make_problem(const Graph& graph, const Costs& costs);

// Tasks in the order in which they run, first runs and repetitions alike.
using Runs = std::vector<int>;
double seconds_of(const Problem& problem, const Runs& runs);
Schedule to_schedule(const Problem& problem, const Runs& runs);

}  // namespace thimble
