// momentum_decay(m, w) -> m' = momentum m + weight_decay w; attrs momentum, weight_decay (0). The
// first part of heavy-ball SGD: its momentum decays. Gradients are then added into m', and w moves
// along it. No tensor holds a gradient (transform/optimizer.h).
#include "ops/update/update.h"
#include "ops/work.h"

namespace thimble {
namespace {

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs& attrs) {
  check_inputs("momentum_decay", inputs, 2);
  check_update("momentum_decay", inputs, 2, 2, {});
  attrs.real("momentum");
  return {inputs[0]};
}

void reference(const KernelArgs& args) {
  run_update(args, 2, [&](const auto& elements) {
    const auto momentum = elements.attr("momentum", 0), decay = elements.attr("weight_decay", 0);
    for (int64_t i = 0; i < args.inputs[0].elements(); ++i) {
      elements.write(0, i, momentum * elements.read(0, i) + decay * elements.read(1, i));
    }
  });
}

std::vector<Sample> samples() {
  return {
      {.inputs = {{{5, 7}}, {{5, 7}}}, .attrs = {{"momentum", 0.9}}},
      {.inputs = {{{16, 3, 3, 8}}, {{16, 3, 3, 8}}},
       .attrs = {{"momentum", 0.9}, {"weight_decay", 1e-2}}},
  };
}

}  // namespace

extern const OpDef op_momentum_decay{
    .name = "momentum_decay",
    .summary = "what heavy-ball SGD keeps of its momentum, and the pull of weight decay",
    .infer = infer,
    .reference = reference,
    .work = flops_per_input<3>,
    .samples = samples,
    .recompute = Recompute::never,
    .updates = {{0, 0}},
};

}  // namespace thimble
