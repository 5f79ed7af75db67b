// lstm_cell_backward(x, h, c, w_x, w_h, gates, c', dh', dc')
//   -> (dh, dc, dw_x, dw_h, dbias [, dx]); attr needs_dx (1: the last output exists).
#include "ops/reading.h"
#include "ops/recurrent/lstm_step.h"
#include "ops/samples.h"

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
      const auto in = [&](size_t i, int64_t place) { return widen(args.inputs[i].as<T>()[place]); };
      std::array<Real, 4> gate{};
      for (int64_t q = 0; q < 4; ++q) gate[static_cast<size_t>(q)] = in(5, g.gate_at(b, q, j));
      const auto d = lstm_unit_backward<Real>(gate, in(2, at), in(6, at), in(7, at), in(8, at));
      for (int64_t q = 0; q < 4; ++q) d_gates[g.gate_at(b, q, j)] = d.gates[static_cast<size_t>(q)];
      store(args.outputs[1].as<T>(), at, d.c, args.adds_into(1));
    }
  }
}

void reference(const KernelArgs& args) {
  const LstmGeometry g = {args.inputs[0].type.shape[0], args.inputs[0].type.shape[1],
                          args.inputs[1].type.shape[1]};
  with_float_type(args.inputs[0].type.dtype, [&]<class T>(TypeTag<T>) {
    using Real = Accumulator<T>;
    Real* d_gates = reinterpret_cast<Real*>(args.workspace);
    gates_backward<T>(g, args, d_gates);

    const auto into = [&](size_t output) {
      return [&args, output](int64_t at, Real sum) {
        store(args.outputs[output].as<T>(), at, sum, args.adds_into(output));
      };
    };
    const auto in = [&](size_t i) -> const T* { return args.inputs[i].as<T>(); };
    const auto to_data = [&](size_t output, const T* weights, int64_t width) {
      lstm_to_data<T>(d_gates, g.batch, g.gate_rows(), weights, width, into(output));
    };
    const auto to_weights = [&](size_t output, const T* data, int64_t width) {
      lstm_to_weights(
          d_gates, g.batch, g.gate_rows(), width,
          [&](int64_t b, int64_t k) { return widen(data[b * width + k]); }, into(output));
    };
    to_data(0, in(4), g.hidden);
    to_weights(2, in(0), g.inputs);
    to_weights(3, in(1), g.hidden);
    lstm_to_weights(
        d_gates, g.batch, g.gate_rows(), 1, [](int64_t, int64_t) { return Real{1}; }, into(4));
    if (args.outputs.size() > 5) to_data(5, in(3), g.inputs);
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
    result.push_back({.inputs = lstm_inputs(g, {g.batch, g.inputs},
                                            {g.gates(), g.state(), g.state(), g.state()}),
                      .attrs = {{"needs_dx", int64_t{1}}},
                      .fills = {{}, {}, {}, {}, {}, {Fill::Kind::uniform, 0.1, 0.9}}});
  }
  result.push_back(result.front());
  result.back().attrs.set("needs_dx", int64_t{0});
  // Weights and bias, as in a later step of a sequence; and all.
  return and_added(and_added(std::move(result), 0x1c), 0x3f);
}

}  // namespace

extern const OpDef op_lstm_cell_backward{
    .name = "lstm_cell_backward",
    .summary = "gradient of lstm_cell",
    .infer = infer,
    .reference = reference,
    .reference_workspace = reference_workspace,
    .work = work,
    .samples = samples,
    .recompute = Recompute::costly,
    .in_place = {{0, 7}, {1, 8}},
    .reading = reads<Reading::curved, 5, 6>,
    .accumulates = 0x3f,
};

}  // namespace thimble
