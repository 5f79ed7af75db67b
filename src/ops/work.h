// Work of ops that do so many operations per element, in one pass over their inputs and outputs. An
// exponential counts as ten.
#pragma once

#include "graph/op.h"

namespace thimble {

template <int kFlops>
Work flops_per_input(const Signature& s) {
  return {kFlops * static_cast<double>(s.inputs[0].elements()), 0};
}

template <int kFlops>
Work flops_per_output(const Signature& s) {
  return {kFlops * static_cast<double>(s.outputs[0].elements()), 0};
}

}  // namespace thimble
