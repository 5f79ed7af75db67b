// Shared by the ops that update weights: checks, and the plain kernels' way to elements. See
// ops/update/update_layout.h for factor and key, which come behind an op's own inputs.
// Weight, gradient and state have one shape; each has a floating dtype of its own.
#pragma once

#include "base/number/philox.h"
#include "base/number/stochastic_rounding.h"
#include "ops/checks.h"
#include "ops/reference.h"
#include "ops/update/update_layout.h"

namespace thimble {

// Checks the number of inputs and the extras among them.
inline void check_extras(std::string_view op, std::span<const TensorType> inputs, size_t own_inputs,
                         const Attrs& attrs) {
  const ExtraPlaces extras = update_extras(own_inputs, attrs);
  check_inputs(op, inputs, own_inputs + (extras.factor >= 0 ? 1 : 0) + (extras.key >= 0 ? 1 : 0));
  if (extras.factor >= 0) {
    check_type(op, "factor", inputs[static_cast<size_t>(extras.factor)], {{1}, DType::f32});
  }
  if (extras.key >= 0) {
    check_type(op, "key", inputs[static_cast<size_t>(extras.key)], {{2}, DType::i64});
  }
}

// Checks tensors shaped like the weight, inputs [0, tensors).
inline void check_like_weight(std::string_view op, std::span<const TensorType> inputs,
                              size_t tensors) {
  for (size_t i = 0; i < tensors; ++i) {
    check_floating(op, "weight, gradient and state", inputs[i]);
    check_type(op, "gradient and state like the weight:", inputs[i],
               {inputs[0].shape, inputs[i].dtype});
  }
}

// Checks f32 scalars, inputs [first, end).
inline void check_scalars(std::string_view op, std::span<const TensorType> inputs, size_t first,
                          size_t end) {
  for (size_t i = first; i < end; ++i) check_type(op, "a scalar", inputs[i], {{1}, DType::f32});
}

// Checks the first `tensors` inputs (weight, gradient, state), the f32 scalars up to `own_inputs`
// and the extras behind them.
inline void check_update(std::string_view op, std::span<const TensorType> inputs, size_t tensors,
                         size_t own_inputs, const Attrs& attrs) {
  check_extras(op, inputs, own_inputs, attrs);
  check_like_weight(op, inputs, tensors);
  check_scalars(op, inputs, tensors, own_inputs);
}

// The rule of an update's attrs; UserError where there is none that works on single elements.
inline const UpdateRule& checked_rule(std::string_view op, const Attrs& attrs) {
  const std::string_view name = attrs.text("rule", "");
  const UpdateRule* const rule = find_update_rule(name);
  user_check(rule != nullptr && rule->op.empty(), "[{}] has no rule '{}'", op, name);
  return *rule;
}

// The sample with a factor and random rounding. REQUIRES: each of its inputs has a fill.
inline Sample with_extras(Sample sample) {
  sample.inputs.push_back({{1}});
  sample.fills.push_back({Fill::Kind::uniform, 0.4, 0.6});
  sample.inputs.push_back({{2}, DType::i64});
  sample.fills.push_back({Fill::Kind::labels, 0, 1000});
  sample.attrs.set("scaled", int64_t{1}).set("rounding", "stochastic").set("stream", int64_t{3});
  return sample;
}

// The factor of gradients. 0: nothing changes.
inline float factor_of(const KernelArgs& args, size_t own_inputs) {
  const int at = update_extras(own_inputs, *args.attrs).factor;
  return at < 0 ? 1 : *args.inputs[static_cast<size_t>(at)].as<float>();
}

// The plain kernels' way to elements of any dtype. Real: double where the weight is f64.
template <class Real>
class UpdateElements {
 public:
  UpdateElements(const KernelArgs& args, size_t own_inputs) : args_(args) {
    const ExtraPlaces extras = update_extras(own_inputs, *args.attrs);
    factor_ = static_cast<Real>(factor_of(args, own_inputs));
    stochastic_ = extras.key >= 0;
    if (stochastic_) {
      key_ = rounding_key(args.inputs[static_cast<size_t>(extras.key)].as<int64_t>(), *args.attrs,
                          args.outputs[0].elements());
    }
  }

  bool skips() const { return factor_ == 0; }
  Real attr(std::string_view name, double usual) const {
    return static_cast<Real>(args_.attrs->real(name, usual));
  }
  // 0 where there is no such input, -1.
  double scalar(int input) const {
    return input < 0 ? 0
                     : static_cast<double>(*args_.inputs[static_cast<size_t>(input)].as<float>());
  }
  Real read(size_t input, int64_t i) const { return read(args_.inputs[input], i); }
  // Of the loss itself, whatever it was scaled by.
  Real gradient(int64_t i) const { return factor_ * read(1, i); }
  Real scaled(float gradient) const { return factor_ * static_cast<Real>(gradient); }

  void write(size_t output, int64_t i, Real value) const {
    const TensorRef& to = args_.outputs[output];
    with_float_type(to.type.dtype, [&]<class T>(TypeTag<T>) {
      if constexpr (sizeof(T) == 2) {
        if (stochastic_) {
          to.as<T>()[i] = round_stochastically(
              static_cast<float>(value), key_.word(static_cast<int>(output), i), TypeTag<T>{});
          return;
        }
      }
      to.as<T>()[i] = static_cast<T>(value);
    });
  }
  // Writes what the rounding of the weight, output 0, left over.
  void write_rest(size_t rest, int64_t i, Real wide) const {
    write(rest, i, wide - read(args_.outputs[0], i));
  }

 private:
  static Real read(const TensorRef& from, int64_t i) {
    return with_float_type(from.type.dtype,
                           [&]<class T>(TypeTag<T>) { return static_cast<Real>(from.as<T>()[i]); });
  }

  const KernelArgs& args_;
  Real factor_ = 1;
  bool stochastic_ = false;
  RoundingKey key_ = {};
};

// Calls body(elements) unless the step is skipped; `elements` computes in double for f64 weights.
template <class Body>
void run_update(const KernelArgs& args, size_t own_inputs, const Body& body) {
  const auto run = [&](const auto& elements) {
    if (!elements.skips()) body(elements);
  };
  if (args.inputs[0].type.dtype == DType::f64) {
    run(UpdateElements<double>(args, own_inputs));
  } else {
    run(UpdateElements<float>(args, own_inputs));
  }
}

}  // namespace thimble
