// detach(x) -> y = x, through which no gradient passes. A view.
#include <cstring>

#include "ops/reference.h"

namespace thimble {
namespace {

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs&) {
  check_inputs("detach", inputs, 1);
  return {inputs[0]};
}

// Copies where a caller did not make the view share its bytes.
void reference(const KernelArgs& args) {
  if (args.outputs[0].data == args.inputs[0].data) return;
  std::memcpy(args.outputs[0].data, args.inputs[0].data,
              static_cast<size_t>(args.outputs[0].type.bytes().count));
}

std::vector<Sample> samples() { return {{.inputs = {{{2, 3, 4}}}}, {.inputs = {{{7}}}}}; }

}  // namespace

extern const OpDef op_detach{
    .name = "detach",
    .summary = "the same tensor, as a constant to the gradient",
    .infer = infer,
    .reference = reference,
    .samples = samples,
    .view = true,
};

}  // namespace thimble
