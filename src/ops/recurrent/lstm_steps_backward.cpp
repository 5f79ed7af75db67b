// lstm_steps_backward(x, h, c, w_x, w_h, gates, cs, hs, dh' [B,H], dc' [B,H] [, dhs [K,B,H]])
//   -> (dh, dc, dw_x, dw_h, dbias [, dx]); attr needs_dx (1: the last output exists).
// From the last step to the first. Without dhs, nothing arrives at the states between the steps.
// The gradients of the gates are rounded to the dtype of the weights, for products with them; what
// goes from step to step is not.
#include "ops/reading.h"
#include "ops/recurrent/lstm_step.h"
#include "ops/samples.h"

namespace thimble {
namespace {

enum Input : size_t { kX, kH, kC, kWx, kWh, kGates, kCs, kHs, kLastDh, kLastDc, kDhs };

constexpr std::string_view kName = "lstm_steps_backward";

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs& attrs) {
  if (inputs.size() != kDhs + 1) check_inputs(kName, inputs, kDhs);
  const LstmStepsGeometry g = lstm_steps_geometry(kName, inputs);
  const DType dtype = inputs[0].dtype;
  check_type(kName, "gates", inputs[kGates], {g.all_gates(), dtype});
  check_type(kName, "cs", inputs[kCs], {g.all_states(), dtype});
  check_type(kName, "hs", inputs[kHs], {g.all_states(), dtype});
  check_type(kName, "dh'", inputs[kLastDh], {g.state(), dtype});
  check_type(kName, "dc'", inputs[kLastDc], {g.state(), dtype});
  if (inputs.size() > kDhs) check_type(kName, "dhs", inputs[kDhs], {g.all_states(), dtype});
  std::vector<TensorType> result = {
      inputs[kH], inputs[kC], inputs[kWx], inputs[kWh], {{g.gate_rows()}, dtype}};
  if (attrs.integer("needs_dx", 1) != 0) result.push_back(inputs[kX]);
  return result;
}

// In the type sums are done in: the gradients of the gates, [K,B,4H], and those of h and c between
// two steps, [B,H] each.
Bytes reference_workspace(const Signature& s) {
  const LstmStepsGeometry g = lstm_steps_geometry(s.inputs[kX].shape, s.inputs[kH].shape);
  const int64_t numbers = g.rows() * g.gate_rows() + 2 * g.batch * g.hidden;
  return TensorType{{numbers}, statistics_dtype(s.inputs[kX].dtype)}.bytes();
}

template <class T>
class Backward {
 public:
  using Real = Accumulator<T>;

  explicit Backward(const KernelArgs& args)
      : args_(args),
        g_(lstm_steps_geometry(args.inputs[kX].type.shape, args.inputs[kH].type.shape)),
        states_(g_.batch * g_.hidden),
        d_gates_(reinterpret_cast<Real*>(args.workspace)),
        dh_(d_gates_ + g_.rows() * g_.gate_rows()),
        dc_(dh_ + states_) {}

  void run() const {
    for (int64_t i = 0; i < states_; ++i) {
      dh_[i] = widen(in(kLastDh)[i]);
      dc_[i] = widen(in(kLastDc)[i]);
    }
    for (int64_t t = g_.steps; t-- > 0;) step(t);
    for (int64_t i = 0; i < states_; ++i) {
      into(0)(i, dh_[i]);
      into(1)(i, dc_[i]);
    }
    to_weights(2, g_.inputs,
               [&](int64_t r, int64_t k) { return widen(in(kX)[r * g_.inputs + k]); });
    to_weights(3, g_.hidden, [&](int64_t r, int64_t k) {
      const int64_t at = r * g_.hidden + k;
      return widen(at < states_ ? in(kH)[at] : in(kHs)[at - states_]);
    });
    to_weights(4, 1, [](int64_t, int64_t) { return Real{1}; });
    if (args_.outputs.size() > 5) {
      lstm_to_data<T>(d_gates_, g_.rows(), g_.gate_rows(), in(kWx), g_.inputs, into(5));
    }
  }

 private:
  const T* in(size_t i) const { return args_.inputs[i].as<T>(); }
  auto into(size_t output) const {
    return [this, output](int64_t at, Real sum) {
      store(args_.outputs[output].as<T>(), at, sum, args_.adds_into(output));
    };
  }

  template <class Data>
  void to_weights(size_t output, int64_t width, const Data& data) const {
    lstm_to_weights(d_gates_, g_.rows(), g_.gate_rows(), width, data, into(output));
  }

  // dh and dc of the states after step t become those of the states before it.
  void step(int64_t t) const {
    const T* const c = t > 0 ? in(kCs) + (t - 1) * states_ : in(kC);
    const T *const new_c = in(kCs) + t * states_, *const gates = in(kGates) + 4 * t * states_;
    Real* const d_gates = d_gates_ + 4 * t * states_;
    for (int64_t b = 0; b < g_.batch; ++b) {
      for (int64_t j = 0; j < g_.hidden; ++j) {
        const int64_t at = b * g_.hidden + j;
        std::array<Real, 4> gate{};
        for (int64_t q = 0; q < 4; ++q) {
          gate[static_cast<size_t>(q)] = widen(gates[g_.gate_at(b, q, j)]);
        }
        const Real above = args_.inputs.size() > kDhs ? widen(in(kDhs)[t * states_ + at]) : Real{0};
        const auto d = lstm_unit_backward<Real>(gate, widen(c[at]), widen(new_c[at]),
                                                dh_[at] + above, dc_[at]);
        for (int64_t q = 0; q < 4; ++q) {
          d_gates[g_.gate_at(b, q, j)] = widen(static_cast<T>(d.gates[static_cast<size_t>(q)]));
        }
        dc_[at] = d.c;
      }
    }
    lstm_to_data<T>(d_gates, g_.batch, g_.gate_rows(), in(kWh), g_.hidden,
                    [&](int64_t at, Real sum) { dh_[at] = sum; });
  }

  const KernelArgs& args_;
  const LstmStepsGeometry g_;
  const int64_t states_;
  Real *const d_gates_, *const dh_, *const dc_;
};

void reference(const KernelArgs& args) {
  with_float_type(args.inputs[0].type.dtype, [&]<class T>(TypeTag<T>) { Backward<T>(args).run(); });
}

Work work(const Signature& s) {
  const LstmStepsGeometry g = lstm_steps_geometry(kName, s.inputs);
  LstmStepsGeometry data = g;  // dh always, dx when asked for
  if (s.outputs.size() <= 5) data.inputs = 0;
  return {g.all_flops() + data.all_flops(), 0};
}

std::vector<Sample> samples() {
  std::vector<Sample> result;
  const Fill weights = {Fill::Kind::uniform, -0.5, 0.5};  // so that no step amplifies rounding
  const Fill gates = {Fill::Kind::uniform, 0.1, 0.9};
  for (const LstmStepsGeometry& g : kLstmStepsCases) {
    result.push_back({.inputs = lstm_inputs(g, g.all_inputs(),
                                            {g.all_gates(), g.all_states(), g.all_states(),
                                             g.state(), g.state(), g.all_states()}),
                      .attrs = {{"needs_dx", int64_t{1}}},
                      .fills = {{}, {}, {}, weights, weights, gates}});
  }
  const auto vary = [&](int64_t needs_dx, bool has_dhs, uint32_t accumulate) {
    result.push_back(result.front());
    result.back().attrs.set("needs_dx", needs_dx);
    if (!has_dhs) result.back().inputs.pop_back();
    result.back().accumulate = accumulate;
  };
  vary(0, true, 0);
  vary(1, false, 0);
  vary(0, false, 0x1c);  // weights and bias, as in a later run of a sequence
  vary(1, true, 0x1c);
  vary(1, true, 0x3f);
  return and_added(std::move(result), 0x3f, 3);  // of one step
}

}  // namespace

extern const OpDef op_lstm_steps_backward{
    .name = "lstm_steps_backward",
    .summary = "gradient of lstm_steps",
    .infer = infer,
    .reference = reference,
    .reference_workspace = reference_workspace,
    .work = work,
    .samples = samples,
    .recompute = Recompute::costly,
    .in_place = {{0, kLastDh}, {1, kLastDc}},
    .reading = reads<Reading::curved, kGates, kCs>,
    .accumulates = 0x3f,
};

}  // namespace thimble
