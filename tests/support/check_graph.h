// One random graph, differentiated, transformed and planned: each form against an oracle in double.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "backend/backend.h"

namespace thimble {

// A tally of what graphs had in them.
struct Tally {
  int64_t graphs = 0;
  int64_t unsettled = 0;  // of these, without a point at which differences can be trusted
  std::map<std::string_view, int64_t> ops;  // by name: differentiated nodes
  // By name: sums in place, forward nodes taken over, and the like.
  std::map<std::string_view, int64_t> happened;
};

// The fault of the graph of that seed: a sentence, then the graph. Adds to the tally.
//   gradients    of weights and of values in the middle: against central differences
//   sums over microbatches, taking over, lean order: against the step that they were made of
//   whole steps  folded, clipped, scaled, in microbatches: against the rule by hand
//   plans        with recomputation, in one arena: against the interpreter, bit for bit
std::optional<std::string> find_fault_in_random_graph(uint64_t seed, Backend& backend,
                                                      Tally& tally);

}  // namespace thimble
