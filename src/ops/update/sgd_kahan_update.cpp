// sgd_kahan_update(w, g, m, c, lr f32 [1], ...) -> (w, m, c): sgd_update on w + c, where c holds
// what the rounding of w has left over so far (Kahan summation), so that steps too small for a
// 16-bit weight add up. attrs as sgd_update, but for the rounding.
#include "ops/update/sgd_step.h"

namespace thimble {
namespace {

constexpr size_t kOwnInputs = 5;

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs& attrs) {
  check_update("sgd_kahan_update", inputs, 4, kOwnInputs, attrs);
  attrs.real("momentum");
  return {inputs[0], inputs[2], inputs[3]};
}

void reference(const KernelArgs& args) {
  run_update(args, kOwnInputs, [&](const auto& elements) {
    const SgdStep step(elements, *args.attrs, 4);
    for (int64_t i = 0; i < args.inputs[0].elements(); ++i) {
      const auto wide = elements.read(0, i) + elements.read(3, i);
      const auto after = step(wide, elements.gradient(i), elements.read(2, i));
      elements.write_compensated(2, i, after.w);
      elements.write(1, i, after.m);
    }
  });
}

Work work(const Signature& s) { return {9 * static_cast<double>(s.inputs[0].elements()), 0}; }

std::vector<Sample> samples() {
  const std::vector<Fill> fills = {
      {}, {}, {}, {Fill::Kind::zeros}, {Fill::Kind::uniform, 0.01, 0.1}};
  return {
      {.inputs = {{{5, 7}, DType::bf16}, {{5, 7}}, {{5, 7}}, {{5, 7}, DType::bf16}, {{1}}},
       .attrs = {{"momentum", 0.9}, {"nesterov", int64_t{1}}, {"weight_decay", 5e-4}},
       .fills = fills},
  };
}

}  // namespace

extern const OpDef op_sgd_kahan_update;
const OpDef op_sgd_kahan_update{
    .name = "sgd_kahan_update",
    .summary = "sgd_update that carries what rounding leaves over",
    .infer = infer,
    .reference = reference,
    .work = work,
    .samples = samples,
    .recompute = Recompute::never,
    .updates = {{0, 0}, {1, 2}, {2, 3}},
    .tolerance = 1e-3,  // c is a small difference of large numbers, rounded to f32 before
};

}  // namespace thimble
