// lstm_cell(x [B,I], h [B,H], c [B,H], w_x [4H,I], w_h [4H,H], bias [4H])
//   -> (h' [B,H], c' [B,H], gates [B,4H])
//   gates = (sigmoid i, sigmoid f, tanh g, sigmoid o) of x w_x^T + h w_h^T + bias
//   c' = f c + i g,  h' = o tanh(c')
// The activated gates are saved for the gradient.
#include "ops/recurrent/lstm_gradient.h"
#include "ops/recurrent/lstm_step.h"

namespace thimble {
namespace {

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs&) {
  check_inputs("lstm_cell", inputs, 6);
  const LstmGeometry g = lstm_geometry("lstm_cell", inputs);
  const DType dtype = inputs[0].dtype;
  check_type("lstm_cell", "bias", inputs[5], {{g.gate_rows()}, dtype});
  return {{g.state(), dtype}, {g.state(), dtype}, {g.gates(), dtype}};
}

void gradient(GradientBuilder& g) {
  const ValueId dh = upstream_or_zeros(g, 0), dc = upstream_or_zeros(g, 1);
  give_lstm_gradients(g, "lstm_cell_backward", std::array{g.output(2), g.output(1), dh, dc});
}

void reference(const KernelArgs& args) {
  const LstmGeometry g = {args.inputs[0].type.shape[0], args.inputs[0].type.shape[1],
                          args.inputs[1].type.shape[1]};
  with_float_type(args.inputs[0].type.dtype, [&]<class T>(TypeTag<T>) {
    const auto in = [&](size_t i) -> const T* { return args.inputs[i].as<T>(); };
    const auto out = [&](size_t k) { return args.outputs[k].as<T>(); };
    lstm_step<T>(g, {in(3), in(4), in(5)}, in(0), in(1), in(2), out(0), out(1), out(2));
  });
}

Work work(const Signature& s) { return {lstm_geometry("lstm_cell", s.inputs).flops(), 0}; }

// Two steps with the same weights: the result depends on the first step's h' and c'. (The gates,
// saved extras, have no gradient.)
ValueId two_steps(Builder& build, std::span<const ValueId> in) {
  const std::vector<ValueId> first = build.apply("lstm_cell", {in.begin(), in.end()});
  return build.op("lstm_cell", {in[0], first[0], first[1], in[3], in[4], in[5]});
}

std::vector<Sample> samples() {
  std::vector<Sample> result;
  for (const LstmGeometry& g : kLstmCases) {
    result.push_back({.inputs = lstm_inputs(g, {g.batch, g.inputs}, {{g.gate_rows()}}),
                      .differentiate = {0, 1, 2, 3, 4, 5},
                      .build = two_steps});
  }
  result.push_back(result.front());
  result.back().differentiate = {3, 4, 5};  // x is data
  return result;
}

}  // namespace

extern const OpDef op_lstm_cell{
    .name = "lstm_cell",
    .summary = "one step of a long short-term memory layer",
    .infer = infer,
    .gradient = gradient,
    .reference = reference,
    .work = work,
    .samples = samples,
    .recompute = Recompute::costly,
    .in_place = {{1, 2}},
    .maps = 3u << 3,
};

}  // namespace thimble
