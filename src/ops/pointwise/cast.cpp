// cast(x) -> y: the elements in another floating dtype; attr dtype (text). x may be integer.
#include "graph/builder.h"
#include "ops/row_rules.h"
#include "ops/shape/strided.h"

namespace thimble {
namespace {

DType target_of(const Attrs& attrs) {
  const DType dtype = parse_dtype(attrs.text("dtype", ""));
  user_check(is_floating(dtype), "[cast] goes to floating dtypes, not {}", name_of(dtype));
  return dtype;
}

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs& attrs) {
  check_inputs("cast", inputs, 1);
  return {{inputs[0].shape, target_of(attrs)}};
}

void gradient(GradientBuilder& g) {
  const DType from = g.build().type(g.input(0)).dtype;
  if (!g.wants(0) || !is_floating(from)) return;
  g.give(0, g.build().op("cast", {g.upstream()}, {{"dtype", std::string(name_of(from))}}));
}

void reference(const KernelArgs& args) {
  with_any_type(args.inputs[0].type.dtype, [&]<class From>(TypeTag<From>) {
    with_float_type(args.outputs[0].type.dtype, [&]<class To>(TypeTag<To>) {
      const From* x = args.inputs[0].as<From>();
      To* y = args.outputs[0].as<To>();
      for (int64_t i = 0; i < args.outputs[0].elements(); ++i) {
        store(y, i, static_cast<Accumulator<To>>(x[i]), args.adds_into(0));
      }
    });
  });
}

std::vector<Sample> samples() {
  return {
      {.inputs = {{{3, 40}}}, .attrs = {{"dtype", "f64"}}, .differentiate = {0}},
      {.inputs = {{{3, 40}}}, .attrs = {{"dtype", "f16"}}},
      {.inputs = {{{37}}}, .attrs = {{"dtype", "bf16"}}},
      {.inputs = {{{37}, DType::f16}}, .attrs = {{"dtype", "f32"}}},
      {.inputs = {{{2, 65}, DType::bf16}}, .attrs = {{"dtype", "f32"}}},
      {.inputs = {{{37}, DType::u8}}, .attrs = {{"dtype", "f32"}}, .fills = {{Fill::Kind::bytes}}},
      {.inputs = {{{37}, DType::i32}},
       .attrs = {{"dtype", "f32"}},
       .fills = {{Fill::Kind::labels, 0, 1000}}},
      {.inputs = {{{3, 40}, DType::f16}}, .attrs = {{"dtype", "f32"}}, .accumulate = 1},
  };
}

}  // namespace

extern const OpDef op_cast{
    .name = "cast",
    .summary = "the same elements in another dtype",
    .infer = infer,
    .gradient = gradient,
    .reference = reference,
    .samples = samples,
    .rows = rows_of_linear,
    .casts = true,
    .accumulates = 1,
};

}  // namespace thimble
