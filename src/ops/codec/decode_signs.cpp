// decode_signs(bits u8 [bytes]) -> x: 1 where encode_signs found an element above zero, else 0.
// Attrs shape (integer list), dtype (text, default f32).
#include "ops/codec/group_codes.h"
#include "ops/work.h"

namespace thimble {
namespace {

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs& attrs) {
  check_inputs("decode_signs", inputs, 1);
  const TensorType x = decoded_type("decode_signs", attrs);
  check_type("decode_signs", "bits", inputs[0], {{(x.elements() + 7) / 8}, DType::u8});
  return {x};
}

void reference(const KernelArgs& args) {
  with_float_type(args.outputs[0].type.dtype, [&]<class T>(TypeTag<T>) {
    const uint8_t* bits = args.inputs[0].as<uint8_t>();
    for (int64_t i = 0; i < args.outputs[0].elements(); ++i) {
      const bool above = ((bits[i / 8] >> (i % 8)) & 1u) != 0;
      store(args.outputs[0].as<T>(), i, static_cast<Accumulator<T>>(above ? 1 : 0));
    }
  });
}

std::vector<Sample> samples() {
  using List = std::vector<int64_t>;
  return {{.inputs = {{{5}, DType::u8}},
           .attrs = {{"shape", List{5, 7}}},
           .fills = {{Fill::Kind::bytes}}},
          {.inputs = {{{48}, DType::u8}},
           .attrs = {{"shape", List{2, 3, 4, 16}}, {"dtype", "f16"}},
           .fills = {{Fill::Kind::bytes}}}};
}

}  // namespace

extern const OpDef op_decode_signs{
    .name = "decode_signs",
    .summary = "ones where a tensor was above zero",
    .infer = infer,
    .reference = reference,
    .work = flops_per_output<2>,
    .samples = samples,
};

}  // namespace thimble
