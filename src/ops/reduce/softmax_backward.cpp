// softmax_backward(y [...,C], dy) -> dx = y * (dy - sum(y * dy)), from the result of softmax. Attr
// log (default 0); 1: y is the logarithm, and dx = dy - exp(y) * sum(dy).
#include <cmath>

#include "ops/reading.h"
#include "ops/reduce/last_axis.h"
#include "ops/reference.h"
#include "ops/work.h"

namespace thimble {
namespace {

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs&) {
  check_inputs("softmax_backward", inputs, 2);
  check_rows("softmax_backward", inputs[0]);
  check_type("softmax_backward", "gradient", inputs[1], inputs[0]);
  return {inputs[0]};
}

void reference(const KernelArgs& args) {
  const Rows rows = rows_of(args.inputs[0].type.shape);
  const bool log = args.attrs->integer("log", 0) != 0;
  with_float_type(args.inputs[0].type.dtype, [&]<class T>(TypeTag<T>) {
    for (int64_t r = 0; r < rows.count; ++r) {
      const T* y = args.inputs[0].as<T>() + r * rows.columns;
      const T* dy = args.inputs[1].as<T>() + r * rows.columns;
      T* dx = args.outputs[0].as<T>() + r * rows.columns;
      double sum = 0;
      for (int64_t c = 0; c < rows.columns; ++c) {
        sum += static_cast<double>(log ? widen(dy[c]) : widen(y[c]) * widen(dy[c]));
      }
      const auto total = static_cast<Accumulator<T>>(sum);
      for (int64_t c = 0; c < rows.columns; ++c) {
        store(dx, c,
              log ? widen(dy[c]) - std::exp(widen(y[c])) * total
                  : widen(y[c]) * (widen(dy[c]) - total));
      }
    }
  });
}

std::vector<Sample> samples() {
  const Fill share = {Fill::Kind::uniform, 0, 1};
  return {
      {.inputs = {{{5, 7}}, {{5, 7}}}, .fills = {share}},
      {.inputs = {{{2, 3, 4, 33}}, {{2, 3, 4, 33}}}, .fills = {share}},
      {.inputs = {{{6, 21}}, {{6, 21}}},
       .attrs = {{"log", int64_t{1}}},
       .fills = {{Fill::Kind::uniform, -4, 0}}},
  };
}

}  // namespace

extern const OpDef op_softmax_backward{
    .name = "softmax_backward",
    .summary = "gradient of softmax, from its result",
    .infer = infer,
    .reference = reference,
    .work = flops_per_input<4>,
    .samples = samples,
    .in_place = {{0, 1}, {0, 0}},
    .reading = reads<Reading::curved, 0>,
};

}  // namespace thimble
