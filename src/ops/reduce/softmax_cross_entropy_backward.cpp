// softmax_cross_entropy_backward(logits [R,C], lse [R], labels i32 [R], normalizer [1],
// upstream [1]) -> dlogits; attrs of softmax_cross_entropy.
//   dlogits = upstream * normalizer * (exp(logits - lse) - target), 0 in rows that do not count
#include <cmath>

#include "ops/reading.h"
#include "ops/reduce/labels.h"
#include "ops/reduce/last_axis.h"
#include "ops/reference.h"
#include "ops/work.h"

namespace thimble {
namespace {

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs&) {
  check_inputs("softmax_cross_entropy_backward", inputs, 5);
  check_labelled("softmax_cross_entropy_backward", inputs[0], inputs[2]);
  const DType statistics = statistics_dtype(inputs[0].dtype);
  check_type("softmax_cross_entropy_backward", "lse", inputs[1],
             {{inputs[0].shape[0]}, statistics});
  check_type("softmax_cross_entropy_backward", "normalizer", inputs[3], {{1}, statistics});
  check_type("softmax_cross_entropy_backward", "upstream", inputs[4], {{1}, statistics});
  return {inputs[0]};
}

void reference(const KernelArgs& args) {
  const Rows rows = rows_of(args.inputs[0].type.shape);
  const CrossEntropy settings(rows.columns, *args.attrs);
  const int32_t* labels = args.inputs[2].as<int32_t>();
  with_float_type(args.inputs[0].type.dtype, [&]<class T>(TypeTag<T>) {
    using Real = Accumulator<T>;
    const Real scale = *args.inputs[3].as<Real>() * *args.inputs[4].as<Real>();
    for (int64_t r = 0; r < rows.count; ++r) {
      const Real lse = args.inputs[1].as<Real>()[r];
      const Real row_scale = settings.counts(labels[r]) ? scale : 0;
      for (int64_t c = 0; c < rows.columns; ++c) {
        const int64_t at = r * rows.columns + c;
        const Real p = std::exp(widen(args.inputs[0].as<T>()[at]) - lse);
        store(args.outputs[0].as<T>(), at,
              row_scale * (p - static_cast<Real>(settings.target(c, labels[r]))));
      }
    }
  });
}

std::vector<Sample> samples() {
  const auto sample = [](int64_t rows, int64_t classes, double lowest, Attrs attrs) {
    return Sample{.inputs = {{{rows, classes}}, {{rows}}, {{rows}, DType::i32}, {{1}}, {{1}}},
                  .attrs = std::move(attrs),
                  .fills = {{},
                            {Fill::Kind::uniform, 1, 3},
                            {Fill::Kind::labels, lowest, static_cast<double>(classes)}}};
  };
  return {sample(6, 7, 0, {}), sample(5, 10, -1, {{"label_smoothing", 0.1}}),
          sample(9, 33, 0, {{"label_smoothing", 0.3}, {"ignore_index", int64_t{4}}})};
}

}  // namespace

extern const OpDef op_softmax_cross_entropy_backward{
    .name = "softmax_cross_entropy_backward",
    .summary = "gradient of softmax_cross_entropy",
    .infer = infer,
    .reference = reference,
    .work = flops_per_input<4>,
    .samples = samples,
    .in_place = {{0, 0}},
    .reading = reads<Reading::exact, 0, 1>,
};

}  // namespace thimble
