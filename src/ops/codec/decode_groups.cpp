// decode_groups(codes u8 [bytes], ranges f32 [groups, 2]) -> x; attrs bits and zeros as of
// encode_groups, shape (integer list), dtype (text, default f32). The inverse of encode_groups, up
// to its rounding.
#include "ops/codec/group_codes.h"
#include "ops/work.h"

namespace thimble {
namespace {

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs& attrs) {
  check_inputs("decode_groups", inputs, 2);
  const TensorType x = decoded_type("decode_groups", attrs);
  const auto types = group_code_types(x.shape, bits_of("decode_groups", attrs));
  check_type("decode_groups", "codes", inputs[0], types[0]);
  check_type("decode_groups", "ranges", inputs[1], types[1]);
  return {x};
}

void reference(const KernelArgs& args) {
  with_float_type(args.outputs[0].type.dtype, [&]<class T>(TypeTag<T>) {
    with_code(*args.attrs, [&](auto bits, auto zeros) {
      for_each_group(args.outputs[0].elements(), [&](int64_t group, int64_t first, int64_t count) {
        const float* range = args.inputs[1].as<float>() + 2 * group;
        std::array<float, kCodeGroup> x;
        decode_group<bits, zeros>(args.inputs[0].as<uint8_t>() + packed_bytes(first, bits),
                                  {range[0], range[1]}, count, x.data());
        for (int64_t i = 0; i < count; ++i) {
          store(args.outputs[0].as<T>(), first + i,
                static_cast<Accumulator<T>>(x[static_cast<size_t>(i)]));
        }
      });
    });
  });
}

std::vector<Sample> samples() {
  std::vector<Sample> result;
  const auto add = [&](const std::vector<int64_t>& shape, int64_t bytes, int64_t groups,
                       int64_t bits, const char* dtype) {
    for (const int64_t zeros : {0, 1}) {
      result.push_back(
          {.inputs = {{{bytes}, DType::u8}, {{groups, 2}}},
           .attrs = {{"bits", bits}, {"zeros", zeros}, {"shape", shape}, {"dtype", dtype}},
           .fills = {{Fill::Kind::bytes}}});
    }
  };
  add({5, 7}, 35, 1, 8, "f32");
  add({2, 3, 11, 13}, 429, 4, 4, "f32");
  add({5, 7, 16}, 140, 3, 2, "bf16");
  add({5, 61}, 115, 2, 3, "f32");
  add({3, 91}, 205, 2, 6, "f32");
  add({2, 133}, 233, 2, 7, "f16");
  return result;
}

}  // namespace

extern const OpDef op_decode_groups{
    .name = "decode_groups",
    .summary = "a tensor from 2 to 8 bits a number",
    .infer = infer,
    .reference = reference,
    .work = flops_per_output<4>,
    .samples = samples,
};

}  // namespace thimble
