// The common part of element-wise ops of one tensor and their gradients. Gradients read the result
// y and never the argument x, so x may be dropped or overwritten.
#pragma once

#include <cmath>

#include "graph/builder.h"
#include "ops/fixed_name.h"
#include "ops/reading.h"
#include "ops/row_rules.h"
#include "ops/samples.h"
#include "ops/shape/strided.h"
#include "ops/work.h"

namespace thimble {

inline std::vector<TensorType> infer_unary(std::string_view op,
                                           std::span<const TensorType> inputs) {
  check_one_floating(op, inputs);
  return {inputs[0]};
}

inline std::vector<TensorType> infer_unary_backward(std::string_view op,
                                                    std::span<const TensorType> inputs) {
  check_inputs(op, inputs, 2);
  check_floating(op, inputs[0]);
  check_same_type(op, inputs[0], inputs[1]);
  return {inputs[1]};
}

inline void give_unary_gradient(GradientBuilder& g, std::string_view backward) {
  if (g.wants(0)) g.give(0, g.build().op(backward, {g.output(), g.upstream()}, g.attrs()));
}

// y = map(x), per element; y may be x.
template <class Map>
void run_unary(const KernelArgs& args, Map map) {
  with_float_type(args.outputs[0].type.dtype, [&]<class T>(TypeTag<T>) {
    const T* x = args.inputs[0].as<T>();
    T* y = args.outputs[0].as<T>();
    for (int64_t i = 0; i < args.outputs[0].elements(); ++i) {
      store(y, i, map(widen(x[i])), args.adds_into(0));
    }
  });
}

// dx = map(y, dy), per element; dx may be y or dy.
template <class Map>
void run_unary_backward(const KernelArgs& args, Map map) {
  with_float_type(args.outputs[0].type.dtype, [&]<class T>(TypeTag<T>) {
    const T* y = args.inputs[0].as<T>();
    const T* dy = args.inputs[1].as<T>();
    T* dx = args.outputs[0].as<T>();
    for (int64_t i = 0; i < args.outputs[0].elements(); ++i) {
      store(dx, i, map(widen(y[i]), widen(dy[i])), args.adds_into(0));
    }
  });
}

inline std::vector<Sample> unary_samples(const Attrs& attrs = {}) {
  std::vector<Sample> result;
  for (const Shape& shape : {Shape{2, 3, 4, 5}, Shape{37}, Shape{3, 64}}) {
    result.push_back({.inputs = {{shape}}, .attrs = attrs, .differentiate = {0}});
  }
  return result;
}

// `y` says which values the result can have.
inline std::vector<Sample> unary_backward_samples(Fill y, const Attrs& attrs = {}) {
  std::vector<Sample> result;
  for (const Shape& shape : {Shape{2, 3, 4, 5}, Shape{37}, Shape{3, 64}}) {
    result.push_back({.inputs = {{shape}, {shape}}, .attrs = attrs, .fills = {y}});
  }
  return and_added(std::move(result));
}

// The whole record of y = Map(x), whose gradient is the op NAME_backward.
template <FixedName kName, int kFlopsPerElement, class Map>
OpDef unary_op(std::string_view summary, Map) {
  return {.name = kName.view(),
          .summary = summary,
          .infer = [](std::span<const TensorType> inputs,
                      const Attrs&) { return infer_unary(kName.view(), inputs); },
          .gradient =
              [](GradientBuilder& g) {
                give_unary_gradient(g, std::string(kName.view()) + "_backward");
              },
          .reference = [](const KernelArgs& args) { run_unary(args, Map()); },
          .work = flops_per_output<kFlopsPerElement>,
          .samples = [] { return unary_samples(); },
          .rows = rows_by_element,
          .in_place = {{0, 0}}};
}

// That of a gradient dx = Map(y, dy) which reads y as kReading says. `samples` as
// unary_backward_samples makes them.
template <FixedName kName, int kFlopsPerElement, Reading kReading, class Map>
OpDef unary_backward_op(std::string_view summary, std::vector<Sample> (*samples)(), Map) {
  return {.name = kName.view(),
          .summary = summary,
          .infer = [](std::span<const TensorType> inputs,
                      const Attrs&) { return infer_unary_backward(kName.view(), inputs); },
          .reference = [](const KernelArgs& args) { run_unary_backward(args, Map()); },
          .work = flops_per_output<kFlopsPerElement>,
          .samples = samples,
          .in_place = {{0, 1}, {0, 0}},
          .reading = reads<kReading, 0>,
          .accumulates = 1};
}

}  // namespace thimble
