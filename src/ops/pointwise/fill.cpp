// fill() -> y: a tensor of one number. Attrs shape (integer list), value, dtype (text, default
// f32).
#include "ops/row_rules.h"
#include "ops/shape/strided.h"

namespace thimble {
namespace {

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs& attrs) {
  check_inputs("fill", inputs, 0);
  return {{Shape(std::span<const int64_t>(attrs.integers("shape"))),
           parse_dtype(attrs.text("dtype", "f32"))}};
}

void reference(const KernelArgs& args) {
  const double value = args.attrs->real("value");
  with_any_type(args.outputs[0].type.dtype, [&]<class T>(TypeTag<T>) {
    T* y = args.outputs[0].as<T>();
    for (int64_t i = 0; i < args.outputs[0].elements(); ++i) y[i] = static_cast<T>(value);
  });
}

std::vector<Sample> samples() {
  using List = std::vector<int64_t>;
  return {
      {.attrs = {{"shape", List{2, 3, 5}}, {"value", 0.0}}},
      {.attrs = {{"shape", List{37}}, {"value", 1.5}, {"dtype", "f16"}}},
      {.attrs = {{"shape", List{}}, {"value", -2.0}, {"dtype", "bf16"}}},
      {.attrs = {{"shape", List{7}}, {"value", 3.0}, {"dtype", "i32"}}},
  };
}

}  // namespace

extern const OpDef op_fill{
    .name = "fill",
    .summary = "a tensor of one number",
    .infer = infer,
    .reference = reference,
    .samples = samples,
    .rows = rows_of_repeats,
};

}  // namespace thimble
