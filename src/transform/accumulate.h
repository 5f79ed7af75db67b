// Sums that grow over the microbatches of a step, in place.
//
//   begin   zero g                    or, folded: m' = momentum_decay(m, w)
//   each    g += gradient             m' += gradient           (once per microbatch)
//   end     w, m = update(w, g, m)    w = w - rate m'
#pragma once

#include <span>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace thimble {

// Makes `value` grow from `start`, a value of the same type made (or present) before the loop.
struct Growth {
  ValueId start;
  ValueId value;
};

// Turns the first node of each sum into one that adds into `start`, so that nothing holds the gradient of
// the micro-batch alone. Where its op cannot, or another node reads that gradient, one more node adds it.
// Returns the sums, in order. Nodes of the phase `per_microbatch`.
std::vector<ValueId> accumulate_into(Graph& graph, std::span<const Growth> sums);

// A zero of the phase `prologue`, with the type and role of `value`, for accumulate_into. It is named
// so that graphs of the same net for other numbers of rows call theirs the same.
ValueId add_zero(Graph& graph, ValueId value, std::string name);

// Makes every result of the graph the sum over the microbatches.
void accumulate_results(Graph& graph);

}  // namespace thimble
