// A training step in the literature's three terms: model = weights, optimizer = gradients and
// state, activation = what the forward pass leaves for the backward pass.
#pragma once

#include "plan/plan.h"

namespace thimble {

struct MemoryTerms {
  Bytes model;
  Bytes optimizer;
  Bytes activation;

  Bytes total() const { return model + optimizer + activation; }
  bool operator==(const MemoryTerms&) const = default;
};

// Bytes of that role that are kept from step to step.
Bytes persistent_bytes(const Graph& graph, Role role);

// The sums that the literature's ratios refer to, on paper: all weights, a gradient for each, all
// state, and every result of the forward pass that the backward pass reads, once, however the step
// is planned. Relus count as computed in place: their gradients read their results, and so those
// count, even of a kernel that does without. Neither scratch, nor gradients of activations, nor
// pixels and labels as they are fed count.
MemoryTerms terms_on_paper(const Graph& graph);

// The same sums of a plan: gradients of weights at the peak, and values that are really kept from
// the forward pass to the backward pass (of one micro-batch). Codes stand for the values that they
// encode, and recomputed values do not count. The bitmaps of sparse weights belong to the model.
MemoryTerms terms_of(const Graph& graph, const Plan& plan);

}  // namespace thimble
