// The check of two plans that share one step: its full microbatches and a smaller last one.
#pragma once

#include <optional>
#include <string>

#include "plan/plan.h"

namespace thimble {

// Of two sound plans of the same arena, the second of which runs its loop once when the first is
// through with its own: empty when everything that either carries from microbatch to microbatch
// lies at the same bytes in both, by name. Constants may belong to one alone: the second must leave
// those of the first as they are, and its own are set before it runs.
std::optional<std::string> find_disagreement(const Graph& graph, const Plan& plan,
                                             const Graph& other_graph, const Plan& other);

}  // namespace thimble
