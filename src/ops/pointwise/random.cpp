// random(rng i64 [3] = {seed, step, microbatch}) -> y: random numbers, the same whenever they are
// drawn again (base/number/random_stream.h); attrs shape, dtype (f32), stream
// (Builder::next_random_stream), kind: uniform in [0, 1), normal with mean 0 and deviation 1, or
// exponential with mean 1.
#include "ops/checks.h"
#include "ops/pointwise/random_numbers.h"
#include "ops/reference.h"
#include "ops/row_rules.h"
#include "ops/work.h"

namespace thimble {
namespace {

Draw draw_of(const Attrs& attrs) {
  const std::string_view kind = attrs.text("kind", "");
  Draw draw = Draw::uniform;
  user_check(parse_draw(kind, &draw),
             "[random] draws 'uniform', 'normal' or 'exponential' numbers, not '{}'", kind);
  return draw;
}

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs& attrs) {
  check_inputs("random", inputs, 1);
  check_type("random", "rng", inputs[0], {{3}, DType::i64});
  const TensorType y = {Shape(std::span<const int64_t>(attrs.integers("shape"))),
                        parse_dtype(attrs.text("dtype", "f32"))};
  check_floating("random", "dtype", y);
  user_check(y.elements() <= kMaxRandomElements, "[random] {} has too many elements", to_string(y));
  draw_of(attrs);
  attrs.integer("stream");
  return {y};
}

void reference(const KernelArgs& args) {
  const RandomStream random(args.inputs[0].as<int64_t>(), args.attrs->integer("stream"));
  const Draw draw = draw_of(*args.attrs);
  const int64_t elements = args.outputs[0].elements();
  with_float_type(args.outputs[0].type.dtype, [&]<class T>(TypeTag<T>) {
    for (int64_t first = 0; first < elements; first += 4) {
      float numbers[4];
      draw_numbers(draw, random.words(first / 4), numbers);
      for (int64_t at = first; at < elements && at < first + 4; ++at) {
        store(args.outputs[0].as<T>(), at, numbers[at - first]);
      }
    }
  });
}

std::vector<Sample> samples() {
  const auto sample = [](std::vector<int64_t> shape, const char* kind, int64_t stream) {
    return Sample{
        .inputs = {{{3}, DType::i64}},
        .attrs = {{"shape", std::move(shape)}, {"kind", std::string(kind)}, {"stream", stream}},
        .fills = {{Fill::Kind::labels, 0, 1000}}};
  };
  return {sample({5, 7}, "normal", 1), sample({2, 3, 4, 5}, "uniform", 77),
          sample({3}, "normal", 2), sample({}, "exponential", 3)};
}

}  // namespace

extern const OpDef op_random{
    .name = "random",
    .summary = "random numbers that can be drawn again",
    .infer = infer,
    .reference = reference,
    .work = flops_per_output<40>,  // words as for dropout, a logarithm and a sine for two of them
    .samples = samples,
    .rows = rows_of_repeats,
};

}  // namespace thimble
