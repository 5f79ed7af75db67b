// lstm_steps(x [K,B,I], h [B,H], c [B,H], w_x [4H,I], w_h [4H,H], bias [4H])
//   -> (hs [K,B,H], h' [B,H], c' [B,H], cs [K,B,H], gates [K,B,4H])
// K times lstm_cell, one after the other: hs and cs are the states after each step, h' and c' those
// after the last, apart from the rest so that little stays when the rest is dropped. The activated
// gates and cs are saved for the gradient.
#include <algorithm>

#include "ops/recurrent/lstm_gradient.h"
#include "ops/recurrent/lstm_step.h"
#include "ops/row_rules.h"

namespace thimble {
namespace {

enum Output : size_t { kHs, kLastH, kLastC, kCs, kGates };

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs&) {
  check_inputs("lstm_steps", inputs, 6);
  const LstmStepsGeometry g = lstm_steps_geometry("lstm_steps", inputs);
  const DType dtype = inputs[0].dtype;
  check_type("lstm_steps", "bias", inputs[5], {{g.gate_rows()}, dtype});
  return {{g.all_states(), dtype},
          {g.state(), dtype},
          {g.state(), dtype},
          {g.all_states(), dtype},
          {g.all_gates(), dtype}};
}

// The gradient of hs is an input only where there is one: it is as large as hs.
void gradient(GradientBuilder& g) {
  std::vector<ValueId> rest = {g.output(kGates), g.output(kCs), g.output(kHs),
                               upstream_or_zeros(g, kLastH), upstream_or_zeros(g, kLastC)};
  if (g.upstream(kHs).valid()) rest.push_back(g.upstream(kHs));
  give_lstm_gradients(g, "lstm_steps_backward", rest);
}

void reference(const KernelArgs& args) {
  const LstmStepsGeometry g =
      lstm_steps_geometry(args.inputs[0].type.shape, args.inputs[1].type.shape);
  with_float_type(args.inputs[0].type.dtype, [&]<class T>(TypeTag<T>) {
    const auto in = [&](size_t i) -> const T* { return args.inputs[i].as<T>(); };
    const auto out = [&](size_t k) { return args.outputs[k].as<T>(); };
    const int64_t states = g.batch * g.hidden;
    const T *h = in(1), *c = in(2);
    for (int64_t t = 0; t < g.steps; ++t) {
      T *const new_h = out(kHs) + t * states, *const new_c = out(kCs) + t * states;
      lstm_step<T>(g, {in(3), in(4), in(5)}, in(0) + t * g.batch * g.inputs, h, c, new_h, new_c,
                   out(kGates) + 4 * t * states);
      h = new_h;
      c = new_c;
    }
    std::copy_n(h, states, out(kLastH));  // behind the first step: they may lie where h and c do
    std::copy_n(c, states, out(kLastC));
  });
}

Work work(const Signature& s) {
  return {lstm_steps_geometry("lstm_steps", s.inputs).all_flops(), 0};
}

// Two runs with the same weights; the result depends on the first through its last state, and
// nothing arrives at the states between the steps.
ValueId two_runs(Builder& build, std::span<const ValueId> in) {
  const std::vector<ValueId> first = build.apply("lstm_steps", {in.begin(), in.end()});
  return build.apply("lstm_steps",
                     {in[0], first[kLastH], first[kLastC], in[3], in[4], in[5]})[kLastH];
}

std::vector<Sample> samples() {
  std::vector<Sample> result;
  const Fill weights = {Fill::Kind::uniform, -0.5, 0.5};  // so that no step amplifies rounding
  for (const LstmStepsGeometry& g : kLstmStepsCases) {
    result.push_back({.inputs = lstm_inputs(g, g.all_inputs(), {{g.gate_rows()}}),
                      .fills = {{}, {}, {}, weights, weights, {}},
                      .differentiate = {0, 1, 2, 3, 4, 5}});
  }
  result.push_back(result.front());
  result.back().build = two_runs;
  result.push_back(result.back());
  result.back().differentiate = {3, 4, 5};  // x is data
  return result;
}

// Rows lie along the second axis of sequences, and the first of states.
RowFlow rows(const RowCall& call, size_t output) {
  std::optional<RowAxis> all;
  for (size_t i = 0; i < call.flows.size(); ++i) {
    if (call.flows[i].kind == RowFlow::Kind::fixed) continue;
    if (call.flows[i].kind != RowFlow::Kind::rows || i > 2) return kMixed;
    const auto at = row_axis(call.flows[i], call.inputs[i].shape, call.rows);
    if (!at || at->axis != (i == 0 ? 1 : 0)) return kMixed;
    if (all && (at->outer != all->outer || at->inner != all->inner)) return kMixed;
    all = at;
  }
  return along_axis(*all, output == kLastH || output == kLastC ? 0 : 1, call.outputs[output].shape);
}

}  // namespace

extern const OpDef op_lstm_steps{
    .name = "lstm_steps",
    .summary = "consecutive steps of a long short-term memory layer",
    .infer = infer,
    .gradient = gradient,
    .reference = reference,
    .work = work,
    .samples = samples,
    .rows = rows,
    .recompute = Recompute::costly,
    .in_place = {{kLastH, 1}, {kLastC, 2}},
    .maps = 3u << 3,
};

}  // namespace thimble
