// encode_signs(x) -> u8 [bytes]: a bit per element, set where it is above zero; the first element
// in the lowest bit. All that the gradient of a relu reads of its result.
#include "ops/checks.h"
#include "ops/reference.h"
#include "ops/work.h"

namespace thimble {
namespace {

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs&) {
  check_one_floating("encode_signs", inputs);
  return {{{(inputs[0].elements() + 7) / 8}, DType::u8}};
}

void reference(const KernelArgs& args) {
  const int64_t elements = args.inputs[0].elements();
  with_float_type(args.inputs[0].type.dtype, [&]<class T>(TypeTag<T>) {
    const T* x = args.inputs[0].as<T>();
    for (int64_t first = 0; first < elements; first += 8) {
      unsigned byte = 0;
      for (int64_t i = first; i < std::min(first + 8, elements); ++i) {
        byte |= (widen(x[i]) > 0 ? 1u : 0u) << (i - first);
      }
      args.outputs[0].as<uint8_t>()[first / 8] = static_cast<uint8_t>(byte);
    }
  });
}

std::vector<Sample> samples() { return {{.inputs = {{{5, 7}}}}, {.inputs = {{{2, 3, 4, 16}}}}}; }

}  // namespace

extern const OpDef op_encode_signs{
    .name = "encode_signs",
    .summary = "where a tensor is above zero, in a bit a number",
    .infer = infer,
    .reference = reference,
    .work = flops_per_input<2>,
    .samples = samples,
};

}  // namespace thimble
