#include "survey/simulate.h"

#include <algorithm>
#include <cmath>

#include "base/number/philox.h"

namespace thimble {
namespace {

struct Range {
  int64_t begin, end;
};

bool overlap(const std::vector<Range>& a, const std::vector<Range>& b) {
  return std::ranges::any_of(a, [&](const Range& x) {
    return std::ranges::any_of(b,
                               [&](const Range& y) { return x.begin < y.end && y.begin < x.end; });
  });
}

// The bytes that a call reads, and that it writes.
struct Touched {
  std::vector<Range> reads, writes;
};

Touched touched_by(const Graph& graph, const PlannedCall& call) {
  const Node& node = graph[call.node];
  const auto range = [](Bytes at, Bytes size) { return Range{at.count, at.count + size.count}; };
  Touched touched;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    touched.reads.push_back(range(call.inputs[i], graph[node.inputs[i]].type.bytes()));
  }
  for (size_t k = 0; k < node.outputs.size(); ++k) {
    touched.writes.push_back(range(call.outputs[k], graph[node.outputs[k]].type.bytes()));
  }
  if (call.workspace_size.count > 0) {
    touched.writes.push_back(range(call.workspace_at, call.workspace_size));
  }
  return touched;
}

// All calls of a step, microbatch after microbatch, with what of the collectives before has to be over.
class Steps {
 public:
  Steps(const Graph& graph, const Costs& costs, const Plan& plan) {
    std::vector<const PlannedCall*> in_order;
    for (const Phase phase : {Phase::prologue, Phase::per_microbatch, Phase::epilogue}) {
      const int turns = phase == Phase::per_microbatch ? plan.microbatches : 1;
      for (int turn = 0; turn < turns; ++turn) {
        for (const PlannedCall& call : plan.calls) {
          if (graph[call.node].phase == phase) in_order.push_back(&call);
        }
      }
    }
    struct Flying {
      int collective;
      Touched touched;
    };
    std::vector<Flying> flying;  // collectives that a call could still have to wait for
    for (const PlannedCall* call : in_order) {
      const Node& node = graph[call->node];
      if (node.op->view) continue;
      const Touched own = touched_by(graph, *call);
      int waits_for = -1;
      for (const Flying& other : flying) {
        if (overlap(own.reads, other.touched.writes) || overlap(own.writes, other.touched.reads) ||
            overlap(own.writes, other.touched.writes)) {
          waits_for = std::max(waits_for, other.collective);
        }
      }
      // Collectives are over in their order.
      std::erase_if(flying, [&](const Flying& other) { return other.collective <= waits_for; });
      calls.push_back({costs.nodes[call->node.at()].seconds, node.op->collective, waits_for});
      if (node.op->collective) flying.push_back({collectives++, own});
    }
  }

  struct Call {
    double seconds;
    bool collective;
    int waits_for;  // collective; -1: none
  };
  std::vector<Call> calls;
  int collectives = 0;
};

double play(const Steps& steps, const ClusterModel& cluster, bool overlapped) {
  std::vector<double> clocks(static_cast<size_t>(cluster.ranks), 0);
  std::vector<double> over;  // by collective: when it is
  const PhiloxKey key = philox_key(cluster.seed);
  for (size_t c = 0; c < steps.calls.size(); ++c) {
    const Steps::Call& call = steps.calls[c];
    const double ready = call.waits_for >= 0 ? over[static_cast<size_t>(call.waits_for)] : 0;
    for (double& clock : clocks) clock = std::max(clock, ready);
    if (call.collective) {
      const double begins = std::max(std::ranges::max(clocks), over.empty() ? 0.0 : over.back());
      over.push_back(begins + call.seconds);
      if (!overlapped) std::ranges::fill(clocks, over.back());
      continue;
    }
    for (size_t rank = 0; rank < clocks.size(); ++rank) {
      const auto words = philox({static_cast<uint32_t>(rank), static_cast<uint32_t>(c), 0, 0}, key);
      // Disturbances only make a kernel slower, mostly by little.
      const double late = -std::log((static_cast<double>(words[0]) + 0.5) * 0x1p-32);
      const double slow = rank == 0 ? cluster.slowest : 1;
      clocks[rank] += call.seconds * slow * (1 + cluster.jitter * late);
    }
  }
  const double last = over.empty() ? 0 : over.back();
  return std::max(last, std::ranges::max(clocks));
}

}  // namespace

SimulatedStep simulate(const Graph& graph, const Costs& costs, const Plan& plan,
                       const ClusterModel& cluster) {
  const Steps steps(graph, costs, plan);
  SimulatedStep result;
  for (const Steps::Call& call : steps.calls) result.compute += call.collective ? 0 : call.seconds;
  result.in_turn = play(steps, cluster, false);
  result.overlapped = play(steps, cluster, true);
  return result;
}

}  // namespace thimble
