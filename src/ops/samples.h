// Cases for the conformance harness that several ops have alike.
#pragma once

#include <vector>

#include "graph/op.h"

namespace thimble {

// One of them once more, with those `outputs` (a bit each) added into what is there.
inline std::vector<Sample> and_added(std::vector<Sample> samples, uint32_t outputs = 1,
                                     size_t which = 0) {
  Sample added = samples.at(which);
  added.accumulate = outputs;
  samples.push_back(std::move(added));
  return samples;
}

}  // namespace thimble
