// running_stats_update(running_mean [C], running_var [C], mean [K C], var [K C]) -> the first two,
// moved by `momentum` (0.1) towards the last two: K batches, one behind the other, each in turn.
// attr count: the elements behind each mean; var is biased and running_var is not.
#include "ops/checks.h"
#include "ops/reference.h"
#include "ops/row_rules.h"

namespace thimble {
namespace {

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs& attrs) {
  check_inputs("running_stats_update", inputs, 4);
  check_floating_rank("running_stats_update", "statistics", inputs[0], 1);
  check_same_type("running_stats_update", inputs[0], inputs[1]);
  check_same_type("running_stats_update", inputs[2], inputs[3]);
  const int64_t channels = inputs[0].elements(), all = inputs[2].elements();
  user_check(all >= channels && all % channels == 0 && inputs[2].shape.rank() == 1 &&
                 inputs[2].dtype == inputs[0].dtype,
             "[running_stats_update] wants statistics like {}, once or several times, got {}",
             to_string(inputs[0]), to_string(inputs[2]));
  const int64_t count = attrs.integer("count");
  user_check(count >= 2, "[running_stats_update] a variance wants at least 2 values, got {}",
             count);
  return {inputs[0], inputs[1]};
}

void reference(const KernelArgs& args) {
  const double momentum = args.attrs->real("momentum", 0.1);
  const double count = static_cast<double>(args.attrs->integer("count"));
  with_float_type(args.inputs[0].type.dtype, [&]<class T>(TypeTag<T>) {
    using Real = Accumulator<T>;
    const auto move = [&](size_t which, double correction) {
      const Real towards = static_cast<Real>(momentum * correction);
      const T* running = args.inputs[which].as<T>();
      const int64_t channels = args.outputs[which].elements();
      for (int64_t k = 0; k < args.inputs[which + 2].elements() / channels; ++k) {
        const T* batch = args.inputs[which + 2].as<T>() + k * channels;
        for (int64_t c = 0; c < channels; ++c) {
          store(args.outputs[which].as<T>(), c,
                static_cast<Real>(1 - momentum) * widen(running[c]) + towards * widen(batch[c]));
        }
        running = args.outputs[which].as<T>();
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
      {.inputs = {{{7}}, {{7}}, {{21}}, {{21}}},
       .attrs = {{"count", int64_t{12}}},
       .fills = {{}, positive, {}, positive}},
  };
}

}  // namespace

extern const OpDef op_running_stats_update{
    .name = "running_stats_update",
    .summary = "moves running statistics towards those of a batch",
    .infer = infer,
    .reference = reference,
    .samples = samples,
    .rows = rows_of_statistics,
    .recompute = Recompute::never,
    .updates = {{0, 0}, {1, 1}},
};

}  // namespace thimble
