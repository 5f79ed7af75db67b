// The planner's types: the request, the schedule that a policy chooses, the layout that a packer
// chooses, and the plan made of both. All are plain values, can be printed, and survive a round
// trip through JSON.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/number/bytes.h"
#include "graph/graph.h"

namespace thimble {

struct NodeCost {
  double seconds = 0;
  double flops = 0;
  Bytes workspace;
};

struct Costs {
  std::vector<NodeCost> nodes;  // by NodeId
  std::string source;           // "cpu, modelled"
  double share = 1;  // time inside a step over time alone (overlap, caches); included in `nodes`
};

// When values are computed: nodes in execution order, phase by phase (`prologue`, `per_microbatch`,
// `epilogue`). A node's second call is a recomputation, and its readers see the latest copy. A
// value is dropped after the last reader of its latest copy.
struct Call {
  NodeId node;
  bool recompute = false;  // not the node's first call

  bool operator==(const Call&) const = default;
};

struct Schedule {
  std::vector<Call> calls;
  bool operator==(const Schedule&) const = default;
};

// One buffer to place, live from call `first` to call `last` inclusive.
struct BufferUse {
  Bytes size;
  int first = 0;
  int last = 0;
};

struct Layout {
  std::vector<Bytes> offsets;  // one per buffer, multiples of kArenaAlignment
  Bytes arena;                 // the highest end
};

// One call of a finished plan, with every address (offset in the arena) spelt out.
struct PlannedCall {
  NodeId node;
  bool recompute = false;
  std::vector<Bytes> inputs;
  std::vector<Bytes> outputs;
  Bytes workspace_at;
  Bytes workspace_size;

  bool operator==(const PlannedCall&) const = default;
};

struct Plan {
  std::string policy;
  std::string packer;  // that made the layout
  std::vector<PlannedCall> calls;
  std::vector<Bytes> sources;  // by ValueId: address of values present at the start, or -1
  int microbatches = 1;        // how often the `per_microbatch` phase runs
  Bytes arena;                 // exact: the end of the highest byte that a call touches
  Bytes peak_live;             // largest sum of live buffers: no layout is smaller
  int peak_call = 0;           // the call that reaches it
  std::array<Bytes, kRoles> peak_by_role{};  // adds up to peak_live
  std::string costs;                         // Costs::source of the following figures
  double predicted_seconds = 0;              // of one step, all microbatches
  double flops = 0;                          // likewise, recomputation included
  double extra_flops = 0;                    // of which recomputation

  bool operator==(const Plan&) const = default;
};

struct Infeasible {
  Bytes min_bytes;  // the smallest arena that the policy found
  std::string why;
};

using PlanResult = std::variant<Plan, Infeasible>;

// How much values may share bytes. `none` gives every value bytes of its own, as the literature's
// baseline does. `in_place` lets an output overwrite its input. `sharing` reuses dead bytes, too.
enum class Sharing : uint8_t { none, in_place, sharing };

// The budget that asks for the policy's smallest arena.
inline constexpr Bytes kLeastMemory{0};

// The names of two policies (plan/policy.h): the one that keeps everything, and the one that plans
// for a budget.
std::string_view keep_all_policy();
std::string_view budget_policy();

struct PlanRequest {
  const Graph& graph;
  const Costs& costs;
  std::optional<Bytes> budget = {};       // on the arena
  std::string policy{keep_all_policy()};  // as choose_policy() reads it
  Sharing sharing = Sharing::sharing;     // a policy may lower it (Policy::sharing)
  int number = 0;                         // given to policies that take one (Policy::number)
  int microbatches = 1;
  // By ValueId: addresses that another plan of the same arena gave to values present at the start
  // (weights) or made in `prologue` (sums over microbatches), -1 elsewhere; or empty.
  std::vector<Bytes> fixed = {};
  Bytes reserved;  // bytes below this address are taken; only fixed values lie there
};

}  // namespace thimble
