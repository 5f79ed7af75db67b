// Cases for the conformance harness that several ops have alike.
#pragma once

#include <vector>

#include "graph/op.h"

namespace thimble {

// The first of them once more, its result added into what is there.
inline std::vector<Sample> and_added(std::vector<Sample> samples) {
  samples.push_back(samples.front());
  samples.back().accumulate = 1;
  return samples;
}

}  // namespace thimble
