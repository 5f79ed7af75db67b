// adafactor_vector_update(w, g, v f32 like w, lr f32 [1], step f32 [1], ...) -> (w, v); attrs in
// ops/update/adafactor.h; see ops/update/update.h for what may follow. Adafactor for what has no rows and
// columns: a second moment per element.
#include "ops/update/adafactor.h"

namespace thimble {
namespace {

constexpr size_t kOwnInputs = 5;

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs& attrs) {
  check_extras("adafactor_vector_update", inputs, kOwnInputs, attrs);
  check_like_weight("adafactor_vector_update", inputs, 2);
  check_type("adafactor_vector_update", "second moment", inputs[2], {inputs[0].shape, DType::f32});
  check_scalars("adafactor_vector_update", inputs, 3, kOwnInputs);
  return {inputs[0], inputs[2]};
}

void reference(const KernelArgs& args) {
  run_update(args, kOwnInputs, [&](const auto& elements) {
    const AdafactorStep step(elements, args, 3, 4);
    float* v = args.outputs[1].template as<float>();
    for (int64_t i = 0; i < step.elements; ++i) {
      const double before = static_cast<double>(args.inputs[2].template as<float>()[i]);
      v[i] = static_cast<float>(step.keep * before + (1 - step.keep) * step.square(i));
    }
    step.move([&](int64_t i) { return std::sqrt(static_cast<double>(v[i])); });
  });
}

Work work(const Signature& s) { return {20 * static_cast<double>(s.inputs[0].elements()), 0}; }

std::vector<Sample> samples() {
  std::vector<Sample> result;
  const auto add = [&](Shape w, double step, Attrs attrs) {
    result.push_back({.inputs = {{w}, {w}, {w}, {{1}}, {{1}}},
                      .attrs = std::move(attrs),
                      .fills = {{},
                                {},
                                {Fill::Kind::uniform, 0.1, 1},
                                {Fill::Kind::uniform, 0.001, 0.01},
                                {Fill::Kind::uniform, step, step}}});
  };
  add({37}, 1, {});
  add({64}, 10, {{"weight_decay", 0.1}});
  Sample mixed = result.back();
  mixed.inputs[1].dtype = DType::f16;
  result.push_back(with_extras(std::move(mixed)));
  return result;
}

}  // namespace

extern const OpDef op_adafactor_vector_update;
const OpDef op_adafactor_vector_update{
    .name = "adafactor_vector_update",
    .summary = "one step of Adafactor, a second moment per element",
    .infer = infer,
    .reference = reference,
    .work = work,
    .samples = samples,
    .recompute = Recompute::never,
    .updates = {{0, 0}, {1, 2}},
};

}  // namespace thimble
