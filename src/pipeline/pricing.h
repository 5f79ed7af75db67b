// What a recipe's step costs: each node of it, and all of it.
#pragma once

#include <string>

#include "comm/interconnect.h"
#include "pipeline/variant.h"

namespace thimble {

// What each node of the graph, some form of the recipe's step, costs on the recipe's device: see
// gather_costs. Where the recipe's step was measured as a whole, times are scaled by what that was of
// its kernels' sum: kernels of a step overlap, and find in caches what those before them wrote.
Costs costs_of(const Recipe& recipe, const Graph& graph, Backend& backend);

// What joins the ranks: what the recipe says, else what was measured here, else the memory of one machine.
Interconnect interconnect_of(const Recipe& recipe, const Backend& backend);

// What ranks have to do with each other in a step, in `costs_of` as well. Nothing overlaps it here.
struct Communication {
  Interconnect link;
  double seconds = 0;
  Bytes sent;           // by each rank
  int collectives = 0;  // calls
};
Communication communication_of(const Recipe& recipe, const Graph& graph, const Plan& plan,
                               const Backend& backend);

// The name of the recipe's step in a table of measured times, whatever its plan and its codec:
// `seconds` are the step's, `modelled` its kernels' together.
std::string whole_step_key(const Recipe& recipe, const Backend& backend);

// The plan of the full microbatches, with time and FLOPs of the whole step: by itself it takes the last
// microbatch to be as large as the others. Null: it is.
Plan priced_as_a_whole(const Variant& full, const Variant* rest);

}  // namespace thimble
