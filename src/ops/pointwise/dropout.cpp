// dropout(x, rng i64 [3] = {seed, step, microbatch}) -> y like x; attrs p (probability to drop, in
// [0, 1)), stream (Builder::next_random_stream: nodes with different streams drop independently).
// Kept elements are scaled by 1 / (1 - p). Nothing is saved: the mask is a function of rng, and the
// gradient is the same op on dy.
#include "graph/builder.h"
#include "ops/checks.h"
#include "ops/pointwise/dropout_mask.h"
#include "ops/reference.h"
#include "ops/row_rules.h"
#include "ops/work.h"

namespace thimble {
namespace {

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs& attrs) {
  check_inputs("dropout", inputs, 2);
  check_floating("dropout", "tensor", inputs[0]);
  check_type("dropout", "rng", inputs[1], {{3}, DType::i64});
  user_check(inputs[0].elements() <= kMaxRandomElements, "[dropout] {} has too many elements",
             to_string(inputs[0]));
  const double p = attrs.real("p");
  user_check(p >= 0 && p < 1, "[dropout] p lies in [0, 1), got {}", p);
  attrs.integer("stream");
  return {inputs[0]};
}

void gradient(GradientBuilder& g) {
  if (g.wants(0)) g.give(0, g.build().op("dropout", {g.upstream(), g.input(1)}, g.attrs()));
}

void reference(const KernelArgs& args) {
  const double p = args.attrs->real("p");
  const DropoutMask mask(args.inputs[1].as<int64_t>(), args.attrs->integer("stream"), p);
  const int64_t elements = args.outputs[0].elements();
  with_float_type(args.inputs[0].type.dtype, [&]<class T>(TypeTag<T>) {
    const Accumulator<T> scale = static_cast<Accumulator<T>>(1 / (1 - p));
    const T* x = args.inputs[0].as<T>();
    T* y = args.outputs[0].as<T>();
    for (int64_t first = 0; first < elements; first += 4) {
      const PhiloxCounter words = mask.words(first / 4);
      for (int64_t at = first; at < elements && at < first + 4; ++at) {
        store(y, at, mask.keeps(words[static_cast<size_t>(at - first)]) ? widen(x[at]) * scale : 0);
      }
    }
  });
}

std::vector<Sample> samples() {
  const auto sample = [](Shape x, double p, int64_t stream) {
    return Sample{.inputs = {{x}, {{3}, DType::i64}},
                  .attrs = {{"p", p}, {"stream", stream}},
                  .fills = {{}, {Fill::Kind::labels, 0, 1000}},
                  .differentiate = {0}};
  };
  return {sample({5, 7}, 0.5, 1), sample({2, 3, 4, 5}, 0.1, 77), sample({3}, 0, 2)};
}

}  // namespace

extern const OpDef op_dropout{
    .name = "dropout",
    .summary = "zeroes elements at random, with a mask that can be recomputed",
    .infer = infer,
    .gradient = gradient,
    .reference = reference,
    .work = flops_per_input<25>,  // about 100 integer operations make four random words
    .samples = samples,
    .rows = rows_by_element,
    .in_place = {{0, 0}},
};

}  // namespace thimble
