// Gradient accumulation: sums over the micro-batches of a step, in place.
//
//   prologue         zero g                    or, folded: m' = momentum_decay(m, w)
//   per_microbatch   g += gradient             m' += gradient
//   epilogue         w, m = update(w, g, m)    w = w - rate m'
#pragma once

#include <span>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace thimble {

// A sum over micro-batches: each adds `value` to `start`, a value of the same type that exists
// before the first of them.
struct Accumulation {
  ValueId start;
  ValueId value;
};

// Turns the first node of each sum into one that adds into `start`, so that nothing holds the
// gradient of the micro-batch alone. Where its op cannot, or another node reads that gradient, one
// more node adds it. Returns the sums, in order. New nodes are of the phase `per_microbatch`.
std::vector<ValueId> accumulate_into(Graph& graph, std::span<const Accumulation> sums);

// A zero of the phase `prologue`, with the type and role of `value`, for accumulate_into. Graphs of
// the same net with other numbers of rows must use the same name.
ValueId add_zero(Graph& graph, ValueId value, std::string name);

// Makes every result of the graph its sum over the micro-batches.
void accumulate_results(Graph& graph);

}  // namespace thimble
