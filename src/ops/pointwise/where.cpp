// where(mask u8 or i32, a [, b like a]) -> y like a: a where the mask is not 0, else b, or 0
// without b. The mask has the shape of a, or its first axes, and then goes for all of what lies
// behind. attr negate (0; 1: a where the mask is 0).
#include "ops/pointwise/where.h"

#include <algorithm>

#include "graph/builder.h"
#include "ops/checks.h"
#include "ops/reference.h"

namespace thimble {
namespace {

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs&) {
  if (inputs.size() != 3) check_inputs("where", inputs, 2);
  check_floating("where", "tensor", inputs[1]);
  if (inputs.size() == 3) check_same_type("where", inputs[1], inputs[2]);
  const auto mask = inputs[0].shape.dims(), all = inputs[1].shape.dims();
  const bool whole = inputs[0].dtype == DType::u8 || inputs[0].dtype == DType::i32;
  user_check(whole && mask.size() <= all.size() && std::ranges::equal(mask, all.first(mask.size())),
             "[where] wants a mask in u8 or i32 of the first axes of {}, got {}",
             to_string(inputs[1]), to_string(inputs[0]));
  return {inputs[1]};
}

void gradient(GradientBuilder& g) {
  for (const size_t input : {size_t{1}, size_t{2}}) {
    if (input >= g.node().inputs.size() || !g.wants(input)) continue;
    const int64_t negate = g.attrs().integer("negate", 0);
    g.give(input, g.build().op("where", {g.input(0), g.upstream()},
                               {{"negate", input == 1 ? negate : 1 - negate}}));
  }
}

void reference(const KernelArgs& args) {
  const WhereMask mask(args);
  with_float_type(args.outputs[0].type.dtype, [&]<class T>(TypeTag<T>) {
    const T* a = args.inputs[1].as<T>();
    const T* b = args.inputs.size() > 2 ? args.inputs[2].as<T>() : nullptr;
    for (int64_t i = 0; i < args.outputs[0].elements(); ++i) {
      store(args.outputs[0].as<T>(), i,
            mask.takes(i / mask.behind) ? widen(a[i]) : (b != nullptr ? widen(b[i]) : 0));
    }
  });
}

std::vector<Sample> samples() {
  std::vector<Sample> result;
  const auto add = [&](Shape mask, DType dtype, Shape x, bool both, int64_t negate) {
    result.push_back({.inputs = {{mask, dtype}, {x}},
                      .attrs = {{"negate", negate}},
                      .fills = {{Fill::Kind::labels, 0, 2}},
                      .differentiate = {1}});
    if (!both) return;
    result.back().inputs.push_back({x});
    result.back().differentiate.push_back(2);
  };
  add({4, 7}, DType::u8, {4, 7}, true, 0);
  add({3, 5}, DType::i32, {3, 5, 8}, true, 1);
  add({2, 9}, DType::i32, {2, 9, 33}, false, 0);
  add({6}, DType::u8, {6, 4}, false, 1);
  return result;
}

}  // namespace

extern const OpDef op_where{
    .name = "where",
    .summary = "one of two tensors, or zero, by a mask",
    .infer = infer,
    .gradient = gradient,
    .reference = reference,
    .samples = samples,
    .in_place = {{0, 1}},
};

}  // namespace thimble
