// map(x) -> y = f(x), element by element; attrs of (which function: map_functions.h), a and b, the
// numbers that some of them want. The gradient reads x, but where f only shifts or is flat.
#include "ops/pointwise/gate.h"
#include "ops/pointwise/map_functions.h"
#include "ops/pointwise/zeros_like.h"
#include "ops/row_rules.h"

namespace thimble {
namespace {

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs& attrs) {
  user_check(with_map(attrs, [](auto) {}), "[map] knows no function '{}'", attrs.text("of", ""));
  return infer_unary("map", inputs);
}

void gradient(GradientBuilder& g) {
  if (is_step(g.attrs())) {
    if (g.wants(0)) g.give(0, zeros_like(g.build(), g.input(0)));
    return;
  }
  if (g.attrs().text("of", "") != "shift") return give_argument_gradient(g, "map_backward");
  if (g.upstream().valid() && g.wants(0)) g.give(0, g.upstream());
}

void reference(const KernelArgs& args) {
  with_map(*args.attrs, [&](auto f) { run_unary(args, [f](auto x) { return f.value(x); }); });
}

}  // namespace

// A case for every function, with arguments that all of them are smooth at.
std::vector<Sample> map_samples(bool backward) {
  std::vector<Sample> result;
  for_each_map({}, [&](std::string_view name, auto) {
    const Fill fill = {Fill::Kind::uniform, 0.3, 0.9};
    const Attrs attrs = {{"of", std::string(name)}, {"a", 0.25}, {"b", 2.0}};
    const TensorType x = {{3, 37}};
    result.push_back({.inputs = {x}, .attrs = attrs, .fills = {fill}});
    // A gradient of zeros reads nothing of what arrives: tests/ops/steps_test.cpp.
    if (!is_step(attrs)) result.back().differentiate = {0};
    if (backward) result.back().inputs.push_back(x), result.back().differentiate = {};
  });
  Sample below = result.front();
  for (const char* name : {"clip", "elu", "hard_swish", "mish", "smooth_l1", "softplus"}) {
    below.attrs = {{"of", std::string(name)},
                   {"a", name == std::string_view("clip") ? -0.5 : 1.5},
                   {"b", 2.0}};
    below.fills = {{Fill::Kind::uniform, -2.5, -1.6}};
    result.push_back(below);
  }
  return and_added(std::move(result));
}

namespace {

// A number added to a mean of rows is added to the mean of such means.
RowFlow rows(const RowCall& call, size_t output) {
  const bool shifts = call.attrs.text("of", "") == "shift";
  const bool mean = call.flows[0].kind == RowFlow::Kind::mean;
  return shifts && mean ? call.flows[0] : rows_by_element(call, output);
}

}  // namespace

extern const OpDef op_map{
    .name = "map",
    .summary = "a function of each element",
    .infer = infer,
    .gradient = gradient,
    .reference = reference,
    .work = flops_per_output<10>,
    .samples = [] { return map_samples(false); },
    .rows = rows,
    .in_place = {{0, 0}},
    .accumulates = 1,
};

}  // namespace thimble
