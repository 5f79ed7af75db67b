// The geometry shared by lstm_cell, lstm_steps and their gradients. Rows of the weights, and
// columns of the gates,
// are [input H | forget H | cell H | output H].
#pragma once

#include <array>

#include "ops/checks.h"

namespace thimble {

struct LstmGeometry {
  int64_t batch, inputs, hidden;

  int64_t gate_rows() const { return 4 * hidden; }
  Shape state() const { return {batch, hidden}; }
  Shape gates() const { return {batch, gate_rows()}; }
  // Where gate q (0 input, 1 forget, 2 cell, 3 output) of unit j of sample b is.
  int64_t gate_at(int64_t b, int64_t q, int64_t j) const { return (4 * b + q) * hidden + j; }
  // Of one product of the gates with the input and the state.
  double flops() const {
    return 2.0 * static_cast<double>(batch * gate_rows()) * static_cast<double>(inputs + hidden);
  }
};

// Checks (x [B,I], h [B,H], c [B,H], w_x [4H,I], w_h [4H,H]), with which both ops begin.
inline LstmGeometry lstm_geometry(std::string_view op, std::span<const TensorType> types) {
  check_floating_rank(op, "x [B,I]", types[0], 2);
  check_floating_rank(op, "h [B,H]", types[1], 2);
  const DType dtype = types[0].dtype;
  const LstmGeometry g = {types[0].shape[0], types[0].shape[1], types[1].shape[1]};
  check_type(op, "h", types[1], {g.state(), dtype});
  check_type(op, "c", types[2], {g.state(), dtype});
  check_type(op, "w_x", types[3], {{g.gate_rows(), g.inputs}, dtype});
  check_type(op, "w_h", types[4], {{g.gate_rows(), g.hidden}, dtype});
  return g;
}

// Inputs of the samples of both ops and their gradients: (x, h, c, w_x, w_h), and `rest` behind
// them.
inline std::vector<TensorType> lstm_inputs(const LstmGeometry& g, const Shape& x,
                                           std::initializer_list<Shape> rest) {
  std::vector<TensorType> types = {
      {x}, {g.state()}, {g.state()}, {{g.gate_rows(), g.inputs}}, {{g.gate_rows(), g.hidden}}};
  for (const Shape& shape : rest) types.push_back({shape});
  return types;
}

// The cases both ops are checked on: [B, I, H], odd and even.
inline constexpr std::array<LstmGeometry, 4> kLstmCases = {
    {{2, 3, 5}, {3, 5, 4}, {1, 1, 1}, {8, 16, 16}}};

// Consecutive time steps: tensors of all of them have a first axis K.
struct LstmStepsGeometry : LstmGeometry {
  int64_t steps;

  int64_t rows() const { return steps * batch; }
  Shape all_inputs() const { return {steps, batch, inputs}; }
  Shape all_states() const { return {steps, batch, hidden}; }
  Shape all_gates() const { return {steps, batch, gate_rows()}; }
  double all_flops() const { return static_cast<double>(steps) * flops(); }
};

// Without checks: x [K,B,I], h [B,H].
inline LstmStepsGeometry lstm_steps_geometry(const Shape& x, const Shape& h) {
  return {{x[1], x[2], h[1]}, x[0]};
}

// Checks (x [K,B,I], h [B,H], c [B,H], w_x [4H,I], w_h [4H,H]), with which both ops begin.
inline LstmStepsGeometry lstm_steps_geometry(std::string_view op,
                                             std::span<const TensorType> types) {
  check_floating_rank(op, "x [K,B,I]", types[0], 3);
  const Shape& x = types[0].shape;
  user_check(x[0] >= 1, "[{}] wants at least one time step, got {}", op, to_string(types[0]));
  const std::array<TensorType, 5> of_one_step = {TensorType{{x[1], x[2]}, types[0].dtype}, types[1],
                                                 types[2], types[3], types[4]};
  lstm_geometry(op, of_one_step);
  return lstm_steps_geometry(x, types[1].shape);
}

inline constexpr std::array<LstmStepsGeometry, 5> kLstmStepsCases = {
    {{{2, 3, 5}, 3}, {{3, 5, 4}, 2}, {{1, 1, 1}, 4}, {{2, 3, 8}, 1}, {{8, 16, 16}, 3}}};

}  // namespace thimble
