// Samples beside those of an op's own file, made from them: sizes that no vector and no number of threads
// divides, one element, and labels among which are ignored ones.
#pragma once

#include <vector>

#include "graph/op.h"

namespace thimble {

// Small ones.
std::vector<Sample> more_samples(const OpDef& op);
// Large ones, split among threads in parts that are not alike. They cost time: for a few checks only.
std::vector<Sample> large_samples(const OpDef& op);

}  // namespace thimble
