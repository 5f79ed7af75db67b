#include "backend/cpu/recurrent/lstm_step.h"

#include "backend/cpu/parallel.h"
#include "backend/cpu/pointwise/vector_math.h"

namespace thimble {

THIMBLE_FOR_EACH_ISA void lstm_activate(const float* bias, const float* c, int64_t hidden,
                                        float* gates, float* h_after, float* c_after) {
  float *in = gates, *forget = gates + hidden, *cell = gates + 2 * hidden,
        *out = gates + 3 * hidden;
#pragma GCC ivdep
  for (int64_t j = 0; j < hidden; ++j) {
    in[j] = vector_sigmoid(in[j] + bias[j]);
    forget[j] = vector_sigmoid(forget[j] + bias[hidden + j]);
    cell[j] = vector_tanh(cell[j] + bias[2 * hidden + j]);
    out[j] = vector_sigmoid(out[j] + bias[3 * hidden + j]);
    const float value = forget[j] * c[j] + in[j] * cell[j];
    c_after[j] = value;
    h_after[j] = out[j] * vector_tanh(value);
  }
}

THIMBLE_FOR_EACH_ISA void lstm_gates_backward(const LstmState& state, const float* dh_after,
                                              const float* dc_after, int64_t hidden, bool add,
                                              float* __restrict d_gates, float* dc) {
  const float *in = state.gates, *forget = in + hidden, *cell = in + 2 * hidden,
              *out = in + 3 * hidden, *c = state.c, *c_after = state.c_after;
#pragma GCC ivdep
  for (int64_t j = 0; j < hidden; ++j) {
    const float squashed = vector_tanh(c_after[j]);
    const float dh = dh_after[j];
    const float d = dc_after[j] + dh * out[j] * (1 - squashed * squashed);
    d_gates[j] = d * cell[j] * in[j] * (1 - in[j]);
    d_gates[hidden + j] = d * c[j] * forget[j] * (1 - forget[j]);
    d_gates[2 * hidden + j] = d * in[j] * (1 - cell[j] * cell[j]);
    d_gates[3 * hidden + j] = dh * squashed * out[j] * (1 - out[j]);
    dc[j] = (add ? dc[j] : 0) + d * forget[j];
  }
}

}  // namespace thimble
