// adam_update(w, g, m, v, lr f32 [1], step f32 [1], ...) -> (w, m, v)
// attrs beta1 (0.9), beta2 (0.999), epsilon (1e-8), weight_decay (0), decoupled (0); see
// ops/update/adam_step.h, and ops/update/update.h for what may follow.
#include "ops/update/adam_step.h"

namespace thimble {
namespace {

constexpr size_t kOwnInputs = 6;

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs& attrs) {
  check_update("adam_update", inputs, 4, kOwnInputs, attrs);
  return {inputs[0], inputs[2], inputs[3]};
}

void reference(const KernelArgs& args) {
  run_update(args, kOwnInputs, [&](const auto& elements) {
    const AdamStep step(elements, args, 4);
    for (int64_t i = 0; i < args.inputs[0].elements(); ++i) {
      const auto after =
          step(elements.read(0, i), elements.gradient(i), elements.read(2, i), elements.read(3, i));
      elements.write(0, i, after.w);
      elements.write(1, i, after.m);
      elements.write(2, i, after.v);
    }
  });
}

Work work(const Signature& s) { return {14 * static_cast<double>(s.inputs[0].elements()), 0}; }

std::vector<Sample> samples() {
  std::vector<Sample> result;
  const auto add = [&](Shape w, double step, Attrs attrs) {
    result.push_back({.inputs = {{w}, {w}, {w}, {w}, {{1}}, {{1}}},
                      .attrs = std::move(attrs),
                      .fills = {{},
                                {},
                                {},
                                {Fill::Kind::uniform, 0.1, 1},
                                {Fill::Kind::uniform, 0.001, 0.01},
                                {Fill::Kind::uniform, step, step}}});
  };
  add({5, 7}, 1, {});
  add({33}, 10, {{"weight_decay", 0.01}});
  add({16, 8}, 1000, {{"weight_decay", 0.1}, {"decoupled", int64_t{1}}, {"beta2", 0.95}});
  return result;
}

}  // namespace

extern const OpDef op_adam_update;
const OpDef op_adam_update{
    .name = "adam_update",
    .summary = "one step of Adam or AdamW",
    .infer = infer,
    .reference = reference,
    .work = work,
    .samples = samples,
    .recompute = Recompute::never,
    .updates = {{0, 0}, {1, 2}, {2, 3}},
};

}  // namespace thimble
