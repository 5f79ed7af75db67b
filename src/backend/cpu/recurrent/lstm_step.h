// The elementwise parts of one time step of a long short-term memory layer, for one sample.
#pragma once

#include <cstdint>

namespace thimble {

// gates [4H]: sums of the products in, activated gates out. c_after may be c.
void lstm_activate(const float* bias, const float* c, int64_t hidden, float* gates, float* h_after,
                   float* c_after);

struct LstmState {
  const float *gates, *c, *c_after;  // [4H], [H], [H]
};

// From the gradients of h and c after the step to those of the gates, d_gates [4H], and of c before
// it, which is written to `dc` or added. dc may be dc_after.
void lstm_gates_backward(const LstmState& state, const float* dh_after, const float* dc_after,
                         int64_t hidden, bool add, float* d_gates, float* dc);

}  // namespace thimble
