// encode_groups(x, rng i64 [3] = {seed, step, microbatch}) -> (codes u8 [bytes], ranges f32
// [groups, 2] = {low, step}); attrs bits (2 to 8), zeros (1: no number is below zero, and zeros
// alone become zeros; default 0), stream (Builder::next_random_stream). x in a few bits a number,
// for decode_groups. Rounding is a function of rng: again the same bits.
#include "base/number/random_stream.h"
#include "ops/codec/group_codes.h"
#include "ops/work.h"

namespace thimble {
namespace {

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs& attrs) {
  check_inputs("encode_groups", inputs, 2);
  check_floating("encode_groups", "tensor", inputs[0]);
  check_type("encode_groups", "rng", inputs[1], {{3}, DType::i64});
  user_check(inputs[0].elements() <= kMaxRandomElements, "[encode_groups] {} has too many elements",
             to_string(inputs[0]));
  attrs.integer("stream");
  const auto types = group_code_types(inputs[0].shape, bits_of("encode_groups", attrs));
  return {types.begin(), types.end()};
}

void reference(const KernelArgs& args) {
  const RandomStream random(args.inputs[1].as<int64_t>(), args.attrs->integer("stream"));
  with_float_type(args.inputs[0].type.dtype, [&]<class T>(TypeTag<T>) {
    with_code(*args.attrs, [&](auto bits, auto zeros) {
      for_each_group(args.inputs[0].elements(), [&](int64_t group, int64_t first, int64_t count) {
        std::array<float, kCodeGroup> x, dither;
        for (int64_t i = 0; i < count; ++i) {
          x[static_cast<size_t>(i)] = static_cast<float>(args.inputs[0].as<T>()[first + i]);
        }
        random.uniform(first, dither);
        const CodeRange range = encode_group<bits, zeros>(
            x.data(), count, args.outputs[0].as<uint8_t>() + packed_bytes(first, bits),
            [&](int64_t i) { return dither[static_cast<size_t>(i)]; });
        args.outputs[1].as<float>()[2 * group] = range.low;
        args.outputs[1].as<float>()[2 * group + 1] = range.step;
      });
    });
  });
}

std::vector<Sample> samples() {
  std::vector<Sample> result;
  const auto add = [&](Shape x, int64_t bits, int64_t stream, int64_t zeros) {
    result.push_back({.inputs = {{x}, {{3}, DType::i64}},
                      .attrs = {{"bits", bits}, {"stream", stream}, {"zeros", zeros}},
                      .fills = {{}, {Fill::Kind::labels, 0, 1000}}});
  };
  for (const int64_t zeros : {0, 1}) {
    add({5, 7}, 8, 1, zeros);
    add({2, 3, 11, 13}, 4, 2, zeros);
    add({5, 7, 16}, 2, 77, zeros);
    add({1}, 2, 3, zeros);
    add({5, 61}, 3, 4, zeros);
    add({3, 91}, 6, 5, zeros);
    add({2, 133}, 7, 6, zeros);
  }
  return result;
}

}  // namespace

extern const OpDef op_encode_groups{
    .name = "encode_groups",
    .summary = "a tensor in 2 to 8 bits a number, rounded stochastically",
    .infer = infer,
    .reference = reference,
    .work = flops_per_input<30>,
    .samples = samples,
};

}  // namespace thimble
