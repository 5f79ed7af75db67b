// sgd_plain_update(w, g, lr f32 [1], ...) -> w - lr (g + weight_decay w); attr weight_decay (0);
// see ops/update/update.h for what may follow.
#include "ops/update/update.h"

namespace thimble {
namespace {

constexpr size_t kOwnInputs = 3;

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs& attrs) {
  check_update("sgd_plain_update", inputs, 2, kOwnInputs, attrs);
  return {inputs[0]};
}

void reference(const KernelArgs& args) {
  run_update(args, kOwnInputs, [&](const auto& elements) {
    const auto decay = elements.attr("weight_decay", 0), rate = elements.scalar(2);
    for (int64_t i = 0; i < args.inputs[0].elements(); ++i) {
      const auto w = elements.read(0, i);
      elements.write(0, i, w - rate * (elements.gradient(i) + decay * w));
    }
  });
}

Work work(const Signature& s) { return {4 * static_cast<double>(s.inputs[0].elements()), 0}; }

std::vector<Sample> samples() {
  const std::vector<Fill> fills = {{}, {}, {Fill::Kind::uniform, 0.01, 0.1}};
  return {
      {.inputs = {{{5, 7}}, {{5, 7}}, {{1}}}, .fills = fills},
      {.inputs = {{{64}}, {{64}}, {{1}}}, .attrs = {{"weight_decay", 1e-2}}, .fills = fills},
  };
}

}  // namespace

extern const OpDef op_sgd_plain_update;
const OpDef op_sgd_plain_update{
    .name = "sgd_plain_update",
    .summary = "one step of stochastic gradient descent without momentum",
    .infer = infer,
    .reference = reference,
    .work = work,
    .samples = samples,
    .recompute = Recompute::never,
    .updates = {{0, 0}},
};

}  // namespace thimble
