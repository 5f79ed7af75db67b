// lstm_cell_backward(x, h, c, w_x, w_h, gates, c', dh', dc')
//   -> (dh, dc, dw_x, dw_h, dbias [, dx]); attr needs_dx (1: the last output exists).
#include <cmath>

#include "ops/lstm_geometry.h"
#include "ops/reference.h"

namespace thimble {
namespace {

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs& attrs) {
  check_inputs("lstm_cell_backward", inputs, 9);
  const LstmGeometry g = lstm_geometry("lstm_cell_backward", inputs);
  const DType dtype = inputs[0].dtype;
  check_type("lstm_cell_backward", "gates", inputs[5], {g.gates(), dtype});
  check_type("lstm_cell_backward", "c'", inputs[6], {g.state(), dtype});
  check_type("lstm_cell_backward", "dh'", inputs[7], {g.state(), dtype});
  check_type("lstm_cell_backward", "dc'", inputs[8], {g.state(), dtype});
  std::vector<TensorType> result = {
      inputs[1], inputs[2], inputs[3], inputs[4], {{g.gate_rows()}, dtype}};
  if (attrs.integer("needs_dx", 1) != 0) result.push_back(inputs[0]);
  return result;
}

// Holds the gradients of the gates' pre-activations, [B,4H] in the type sums are done in.
Bytes reference_workspace(const Signature& s) {
  return TensorType{s.inputs[5].shape, statistics_dtype(s.inputs[5].dtype)}.bytes();
}

// Elementwise part: fills d_gates and writes dc. After it dh' and dc' are not read again, so dh and
// dc may take their bytes.
template <class T>
void gates_backward(const LstmGeometry& g, const KernelArgs& args, Accumulator<T>* d_gates) {
  using Real = Accumulator<T>;
  for (int64_t b = 0; b < g.batch; ++b) {
    for (int64_t j = 0; j < g.hidden; ++j) {
      const int64_t at = b * g.hidden + j;
      const auto gate = [&](int64_t q) {
        return widen(args.inputs[5].as<T>()[g.gate_at(b, q, j)]);
      };
      const Real in = gate(0), forget = gate(1), cell = gate(2), out = gate(3);
      const Real squashed = std::tanh(widen(args.inputs[6].as<T>()[at]));
      const Real dh = widen(args.inputs[7].as<T>()[at]);
      const Real dc = widen(args.inputs[8].as<T>()[at]) + dh * out * (1 - squashed * squashed);
      d_gates[g.gate_at(b, 0, j)] = dc * cell * in * (1 - in);
      d_gates[g.gate_at(b, 1, j)] = dc * widen(args.inputs[2].as<T>()[at]) * forget * (1 - forget);
      d_gates[g.gate_at(b, 2, j)] = dc * in * (1 - cell * cell);
      d_gates[g.gate_at(b, 3, j)] = dh * squashed * out * (1 - out);
      store(args.outputs[1].as<T>(), at, dc * forget, args.adds_into(1));
    }
  }
}

void reference(const KernelArgs& args) {
  const LstmGeometry g = {args.inputs[0].type.shape[0], args.inputs[0].type.shape[1],
                          args.inputs[1].type.shape[1]};
  with_float_type(args.inputs[0].type.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using Real = Accumulator<T>;
    Real* d_gates = reinterpret_cast<Real*>(args.workspace);
    gates_backward<T>(g, args, d_gates);

    // output [B,width] = d_gates [B,4H] weights [4H,width]
    const auto to_data = [&](size_t output, const T* weights, int64_t width) {
      for (int64_t b = 0; b < g.batch; ++b) {
        for (int64_t k = 0; k < width; ++k) {
          Real sum = 0;
          for (int64_t row = 0; row < g.gate_rows(); ++row) {
            sum += d_gates[b * g.gate_rows() + row] * widen(weights[row * width + k]);
          }
          store(args.outputs[output].as<T>(), b * width + k, sum, args.adds_into(output));
        }
      }
    };
    // output [4H,width] = d_gates^T [4H,B] data [B,width]; without data: the sum over B.
    const auto to_weights = [&](size_t output, const T* data, int64_t width) {
      for (int64_t row = 0; row < g.gate_rows(); ++row) {
        for (int64_t k = 0; k < width; ++k) {
          Real sum = 0;
          for (int64_t b = 0; b < g.batch; ++b) {
            const Real d = d_gates[b * g.gate_rows() + row];
            sum += data != nullptr ? d * widen(data[b * width + k]) : d;
          }
          store(args.outputs[output].as<T>(), row * width + k, sum, args.adds_into(output));
        }
      }
    };
    to_data(0, args.inputs[4].as<T>(), g.hidden);
    to_weights(2, args.inputs[0].as<T>(), g.inputs);
    to_weights(3, args.inputs[1].as<T>(), g.hidden);
    to_weights(4, nullptr, 1);
    if (args.outputs.size() > 5) to_data(5, args.inputs[3].as<T>(), g.inputs);
  });
}

Work work(const Signature& s) {
  const LstmGeometry g = lstm_geometry("lstm_cell_backward", s.inputs);
  LstmGeometry data = g;  // dh always, dx when asked for
  if (s.outputs.size() <= 5) data.inputs = 0;
  return {g.flops() + data.flops(), 0};
}

std::vector<Sample> samples() {
  std::vector<Sample> result;
  for (const LstmGeometry& g : kLstmCases) {
    result.push_back({.inputs = {{{g.batch, g.inputs}},
                                 {g.state()},
                                 {g.state()},
                                 {{g.gate_rows(), g.inputs}},
                                 {{g.gate_rows(), g.hidden}},
                                 {g.gates()},
                                 {g.state()},
                                 {g.state()},
                                 {g.state()}},
                      .attrs = {{"needs_dx", int64_t{1}}},
                      .fills = {{}, {}, {}, {}, {}, {Fill::Kind::uniform, 0.1, 0.9}}});
  }
  result.push_back(result.front());
  result.back().attrs.set("needs_dx", int64_t{0});
  result.push_back(result.front());
  result.back().accumulate = 0x1c;  // weights and bias, as in a later step of a sequence
  result.push_back(result.front());
  result.back().accumulate = 0x3f;
  return result;
}

}  // namespace

extern const OpDef op_lstm_cell_backward;
const OpDef op_lstm_cell_backward{
    .name = "lstm_cell_backward",
    .summary = "gradient of lstm_cell",
    .infer = infer,
    .reference = reference,
    .reference_workspace = reference_workspace,
    .work = work,
    .samples = samples,
    .recompute = Recompute::costly,
    .in_place = {{0, 7}, {1, 8}},
    .accumulates = 0x3f,
};

}  // namespace thimble
