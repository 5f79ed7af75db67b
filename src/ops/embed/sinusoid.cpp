// sinusoid(tokens i32 [N,T]) -> [N,T,C]: sines and cosines of the positions of tokens (Vaswani et al.
// 2017), as fairseq has them; attrs width (C, at least 4), pad (-1: none), dtype. The position of
// token i of a row is pad + 1 + i; tokens that pad have zeros.
//   y[c] = sin(position * f_c), y[C/2 + c] = cos(position * f_c), f_c = 10000^(-c / (C/2 - 1))
#include "ops/embed/sinusoid.h"

#include "ops/checks.h"
#include "ops/reference.h"
#include "ops/work.h"

namespace thimble {
namespace {

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs& attrs) {
  check_inputs("sinusoid", inputs, 1);
  const int64_t width = attrs.integer("width");
  user_check(inputs[0].dtype == DType::i32 && inputs[0].shape.rank() == 2,
             "[sinusoid] wants tokens i32 [N,T], got {}", to_string(inputs[0]));
  user_check(width >= 4, "[sinusoid] wants a width of 4 at least, got {}", width);
  const DType dtype = parse_dtype(attrs.text("dtype", "f32"));
  check_floating("sinusoid", "dtype", {{1}, dtype});
  return {{{inputs[0].shape[0], inputs[0].shape[1], width}, dtype}};
}

void reference(const KernelArgs& args) {
  const Sinusoid s(*args.attrs);
  const int32_t* tokens = args.inputs[0].as<int32_t>();
  const int64_t steps = args.inputs[0].type.shape[1];
  with_float_type(args.outputs[0].type.dtype, [&]<class T>(TypeTag<T>) {
    for (int64_t i = 0; i < args.inputs[0].elements(); ++i) {
      for (int64_t c = 0; c < s.width; ++c) {
        const double y = tokens[i] == s.pad ? 0 : s.at(i % steps, c);
        store(args.outputs[0].as<T>(), i * s.width + c, static_cast<Accumulator<T>>(y));
      }
    }
  });
}

std::vector<Sample> samples() {
  const auto sample = [](Shape tokens, int64_t width, int64_t pad) {
    return Sample{.inputs = {{tokens, DType::i32}},
                  .attrs = {{"width", width}, {"pad", pad}, {"dtype", std::string("f32")}},
                  .fills = {{Fill::Kind::labels, 0, 4}}};
  };
  return {sample({3, 5}, 8, 1), sample({2, 700}, 33, -1), sample({4, 9}, 64, 0)};
}

}  // namespace

extern const OpDef op_sinusoid{
    .name = "sinusoid",
    .summary = "sinusoidal positions of tokens",
    .infer = infer,
    .reference = reference,
    .work = flops_per_output<20>,
    .samples = samples,
};

}  // namespace thimble
