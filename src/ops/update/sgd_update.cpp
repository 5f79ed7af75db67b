// sgd_update(w, g, m, lr f32 [1], ...) -> (w, m); attrs momentum, nesterov (0), weight_decay (0);
// see ops/update/sgd_step.h, and ops/update/update.h for what may follow. As PyTorch's SGD without dampening.
// Without momentum there is no m: sgd_plain_update.
#include "ops/update/sgd_step.h"

namespace thimble {
namespace {

constexpr size_t kOwnInputs = 4;

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs& attrs) {
  check_update("sgd_update", inputs, 3, kOwnInputs, attrs);
  attrs.real("momentum");
  return {inputs[0], inputs[2]};
}

void reference(const KernelArgs& args) {
  run_update(args, kOwnInputs, [&](const auto& elements) {
    const SgdStep step(elements, *args.attrs, 3);
    for (int64_t i = 0; i < args.inputs[0].elements(); ++i) {
      const auto after = step(elements.read(0, i), elements.gradient(i), elements.read(2, i));
      elements.write(0, i, after.w);
      elements.write(1, i, after.m);
    }
  });
}

Work work(const Signature& s) { return {6 * static_cast<double>(s.inputs[0].elements()), 0}; }

std::vector<Sample> samples() {
  const std::vector<Fill> fills = {{}, {}, {}, {Fill::Kind::uniform, 0.01, 0.1}};
  std::vector<Fill> extras = fills;
  extras.push_back({Fill::Kind::uniform, 0.4, 0.6});
  extras.push_back({Fill::Kind::labels, 0, 1000});
  return {
      {.inputs = {{{5, 7}}, {{5, 7}}, {{5, 7}}, {{1}}, {{1}}, {{2}, DType::i64}},
       .attrs = {{"momentum", 0.9},
                 {"scaled", int64_t{1}},
                 {"rounding", "stochastic"},
                 {"stream", int64_t{3}}},
       .fills = extras},
      {.inputs = {{{700}}, {{700}, DType::f16}, {{700}, DType::bf16}, {{1}}},
       .attrs = {{"momentum", 0.9}, {"weight_decay", 1e-3}},
       .fills = fills},
      {.inputs = {{{5, 7}}, {{5, 7}}, {{5, 7}}, {{1}}},
       .attrs = {{"momentum", 0.9}, {"weight_decay", 5e-4}},
       .fills = fills},
      {.inputs = {{{16, 3, 3, 8}}, {{16, 3, 3, 8}}, {{16, 3, 3, 8}}, {{1}}},
       .attrs = {{"momentum", 0.9}, {"nesterov", int64_t{1}}, {"weight_decay", 1e-2}},
       .fills = fills},
  };
}

}  // namespace

extern const OpDef op_sgd_update;
const OpDef op_sgd_update{
    .name = "sgd_update",
    .summary = "one step of stochastic gradient descent with momentum",
    .infer = infer,
    .reference = reference,
    .work = work,
    .samples = samples,
    .recompute = Recompute::never,
    .updates = {{0, 0}, {1, 2}},
};

}  // namespace thimble
