// normalize_image(x u8 [N,H,W,C], mean f32 [C], inv_std f32 [C]) -> y = (x - mean) * inv_std, in
// units of x (0 to 255). Attr dtype (text, default f32). Data stay bytes until they are used.
#include "ops/shape/strided.h"
#include "ops/work.h"

namespace thimble {
namespace {

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs& attrs) {
  check_inputs("normalize_image", inputs, 3);
  const TensorType& x = inputs[0];
  user_check(x.shape.rank() == 4 && x.dtype == DType::u8,
             "[normalize_image] wants images u8[N,H,W,C], got {}", to_string(x));
  const TensorType per_channel = {{x.shape[3]}, DType::f32};
  user_check(inputs[1] == per_channel && inputs[2] == per_channel,
             "[normalize_image] wants mean and inv_std {}, got {} and {}", to_string(per_channel),
             to_string(inputs[1]), to_string(inputs[2]));
  const DType dtype = parse_dtype(attrs.text("dtype", "f32"));
  user_check(is_floating(dtype), "[normalize_image] makes floating images, not {}", name_of(dtype));
  return {{x.shape, dtype}};
}

void reference(const KernelArgs& args) {
  const uint8_t* x = args.inputs[0].as<uint8_t>();
  const float* mean = args.inputs[1].as<float>();
  const float* inv_std = args.inputs[2].as<float>();
  const int64_t channels = args.inputs[0].type.shape[3];
  with_float_type(args.outputs[0].type.dtype, [&]<class T>(TypeTag<T>) {
    T* y = args.outputs[0].as<T>();
    for (int64_t i = 0; i < args.outputs[0].elements(); ++i) {
      const int64_t c = i % channels;
      store(y, i, (static_cast<float>(x[i]) - mean[c]) * inv_std[c]);
    }
  });
}

std::vector<Sample> samples() {
  const std::vector<Fill> fills = {
      {Fill::Kind::bytes}, {Fill::Kind::uniform, 100, 140}, {Fill::Kind::uniform, 0.01, 0.02}};
  const auto images = [&](const char* dtype) {
    return Sample{.inputs = {{{2, 5, 6, 3}, DType::u8}, {{3}}, {{3}}},
                  .attrs = {{"dtype", dtype}},
                  .fills = fills};
  };
  return {images("f32"), images("f16"), images("bf16")};
}

}  // namespace

extern const OpDef op_normalize_image{
    .name = "normalize_image",
    .summary = "bytes to numbers, shifted and scaled per channel",
    .infer = infer,
    .reference = reference,
    .work = flops_per_output<2>,
    .samples = samples,
};

}  // namespace thimble
