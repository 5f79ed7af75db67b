// running_stats_update(running_mean [C], running_var [C], mean [C], var [C]) -> the first two,
// moved by `momentum` (0.1) towards the last two. attr count: the elements behind each mean; var is
// biased and running_var is not.
#include "ops/checks.h"
#include "ops/reference.h"

namespace thimble {
namespace {

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs& attrs) {
  check_inputs("running_stats_update", inputs, 4);
  check_floating_rank("running_stats_update", "statistics", inputs[0], 1);
  for (const TensorType& type : inputs.subspan(1)) {
    check_same_type("running_stats_update", inputs[0], type);
  }
  const int64_t count = attrs.integer("count");
  user_check(count >= 2, "[running_stats_update] a variance wants at least 2 values, got {}",
             count);
  return {inputs[0], inputs[1]};
}

void reference(const KernelArgs& args) {
  const double momentum = args.attrs->real("momentum", 0.1);
  const double count = static_cast<double>(args.attrs->integer("count"));
  with_float_type(args.inputs[0].type.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using Real = Accumulator<T>;
    const auto move = [&](size_t which, double correction) {
      const Real towards = static_cast<Real>(momentum * correction);
      const T* running = args.inputs[which].as<T>();
      const T* batch = args.inputs[which + 2].as<T>();
      for (int64_t c = 0; c < args.outputs[which].elements(); ++c) {
        store(args.outputs[which].as<T>(), c,
              static_cast<Real>(1 - momentum) * widen(running[c]) + towards * widen(batch[c]));
      }
    };
    move(0, 1);
    move(1, count / (count - 1));
  });
}

std::vector<Sample> samples() {
  const Fill positive = {Fill::Kind::uniform, 0.5, 2};
  return {
      {.inputs = {{{7}}, {{7}}, {{7}}, {{7}}},
       .attrs = {{"count", int64_t{12}}},
       .fills = {{}, positive, {}, positive}},
      {.inputs = {{{64}}, {{64}}, {{64}}, {{64}}},
       .attrs = {{"count", int64_t{2}}, {"momentum", 0.3}},
       .fills = {{}, positive, {}, positive}},
  };
}

}  // namespace

extern const OpDef op_running_stats_update;
const OpDef op_running_stats_update{
    .name = "running_stats_update",
    .summary = "moves running statistics towards those of a batch",
    .infer = infer,
    .reference = reference,
    .samples = samples,
    .recompute = Recompute::never,
    .updates = {{0, 0}, {1, 1}},
};

}  // namespace thimble
