// sgd_plain_kahan_update(w, g, c, lr f32 [1], ...) -> (w, c): sgd_plain_update on w + c, where c
// holds what the rounding of w has left over so far, as in sgd_kahan_update.
#include "ops/update/update.h"

namespace thimble {
namespace {

constexpr size_t kOwnInputs = 4;

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs& attrs) {
  check_update("sgd_plain_kahan_update", inputs, 3, kOwnInputs, attrs);
  return {inputs[0], inputs[2]};
}

void reference(const KernelArgs& args) {
  run_update(args, kOwnInputs, [&](const auto& elements) {
    const auto decay = elements.attr("weight_decay", 0), rate = elements.scalar(3);
    for (int64_t i = 0; i < args.inputs[0].elements(); ++i) {
      const auto w = elements.read(0, i) + elements.read(2, i);
      elements.write_compensated(1, i, w - rate * (elements.gradient(i) + decay * w));
    }
  });
}

Work work(const Signature& s) { return {7 * static_cast<double>(s.inputs[0].elements()), 0}; }

std::vector<Sample> samples() {
  return {
      {.inputs = {{{5, 7}, DType::bf16}, {{5, 7}}, {{5, 7}, DType::bf16}, {{1}}},
       .attrs = {{"weight_decay", 1e-2}},
       .fills = {{}, {}, {Fill::Kind::zeros}, {Fill::Kind::uniform, 0.01, 0.1}}},
  };
}

}  // namespace

extern const OpDef op_sgd_plain_kahan_update;
const OpDef op_sgd_plain_kahan_update{
    .name = "sgd_plain_kahan_update",
    .summary = "sgd_plain_update that carries what rounding leaves over",
    .infer = infer,
    .reference = reference,
    .work = work,
    .samples = samples,
    .recompute = Recompute::never,
    .updates = {{0, 0}, {1, 2}},
    .tolerance = 1e-3,  // c is a small difference of large numbers, rounded to f32 before
};

}  // namespace thimble
