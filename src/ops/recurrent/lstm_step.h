// One time step of a long short-term memory layer in plain loops: what lstm_cell, lstm_steps and
// their gradients have in common.
#pragma once

#include <array>
#include <cmath>

#include "ops/pointwise/activation.h"
#include "ops/recurrent/lstm_geometry.h"
#include "ops/reference.h"

namespace thimble {

template <class T>
struct LstmWeights {
  const T *w_x, *w_h, *bias;  // [4H,I], [4H,H], [4H]
};

// x [B,I], h [B,H], c [B,H] -> new_h [B,H], new_c [B,H], gates [B,4H]. new_c may be c.
template <class T>
void lstm_step(const LstmGeometry& g, const LstmWeights<T>& w, const T* x, const T* h, const T* c,
               T* new_h, T* new_c, T* gates) {
  using Real = Accumulator<T>;
  const auto pre_activation = [&](int64_t b, int64_t row) {
    Real sum = widen(w.bias[row]);
    for (int64_t i = 0; i < g.inputs; ++i) {
      sum += widen(w.w_x[row * g.inputs + i]) * widen(x[b * g.inputs + i]);
    }
    for (int64_t k = 0; k < g.hidden; ++k) {
      sum += widen(w.w_h[row * g.hidden + k]) * widen(h[b * g.hidden + k]);
    }
    return sum;
  };
  for (int64_t b = 0; b < g.batch; ++b) {
    for (int64_t j = 0; j < g.hidden; ++j) {
      std::array<Real, 4> gate{};
      for (int64_t q = 0; q < 4; ++q) {
        const Real z = pre_activation(b, q * g.hidden + j);
        gate[static_cast<size_t>(q)] = q == 2 ? std::tanh(z) : Activation::sigmoid(z);
        store(gates, g.gate_at(b, q, j), gate[static_cast<size_t>(q)]);
      }
      const int64_t at = b * g.hidden + j;
      const Real cell = gate[1] * widen(c[at]) + gate[0] * gate[2];
      store(new_h, at, gate[3] * std::tanh(cell));
      store(new_c, at, cell);
    }
  }
}

// The gradients of one unit: of its gates before they were activated, and of the c it began with.
template <class Real>
struct LstmUnitGradient {
  std::array<Real, 4> gates;
  Real c;
};

// gate: activated; c, new_c: before and after the step; dh, dc: gradients of new_h and new_c.
template <class Real>
LstmUnitGradient<Real> lstm_unit_backward(const std::array<Real, 4>& gate, Real c, Real new_c,
                                          Real dh, Real dc) {
  const auto [in, forget, cell, out] = gate;
  const Real squashed = std::tanh(new_c);
  const Real d = dc + dh * out * (1 - squashed * squashed);
  return {{d * cell * in * (1 - in), d * c * forget * (1 - forget), d * in * (1 - cell * cell),
           dh * squashed * out * (1 - out)},
          d * forget};
}

// Calls write(index, sum) for d_gates [rows,4H] weights [4H,width] -> [rows,width].
template <class T, class Write>
void lstm_to_data(const Accumulator<T>* d_gates, int64_t rows, int64_t gate_rows, const T* weights,
                  int64_t width, const Write& write) {
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t k = 0; k < width; ++k) {
      Accumulator<T> sum = 0;
      for (int64_t gate = 0; gate < gate_rows; ++gate) {
        sum += d_gates[r * gate_rows + gate] * widen(weights[gate * width + k]);
      }
      write(r * width + k, sum);
    }
  }
}

// Calls write(index, sum) for d_gates^T [4H,rows] data [rows,width] -> [4H,width]; data(r, k) is a
// number of it.
template <class Real, class Data, class Write>
void lstm_to_weights(const Real* d_gates, int64_t rows, int64_t gate_rows, int64_t width,
                     const Data& data, const Write& write) {
  for (int64_t gate = 0; gate < gate_rows; ++gate) {
    for (int64_t k = 0; k < width; ++k) {
      Real sum = 0;
      for (int64_t r = 0; r < rows; ++r) sum += d_gates[r * gate_rows + gate] * data(r, k);
      write(gate * width + k, sum);
    }
  }
}

}  // namespace thimble
