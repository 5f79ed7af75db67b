// carry(kept, latest) -> kept, which becomes `latest`: what one step hands to the next.
#include <cstring>

#include "ops/reference.h"

namespace thimble {
namespace {

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs&) {
  check_inputs("carry", inputs, 2);
  check_same_type("carry", inputs[0], inputs[1]);
  return {inputs[0]};
}

void reference(const KernelArgs& args) {
  std::memcpy(args.outputs[0].data, args.inputs[1].data,
              static_cast<size_t>(args.outputs[0].type.bytes().count));
}

std::vector<Sample> samples() {
  return {{.inputs = {{{3, 5}}, {{3, 5}}}}, {.inputs = {{{64}}, {{64}}}}};
}

}  // namespace

extern const OpDef op_carry{
    .name = "carry",
    .summary = "what one step hands to the next",
    .infer = infer,
    .reference = reference,
    .samples = samples,
    .recompute = Recompute::never,
    .updates = {{0, 0}},
};

}  // namespace thimble
