// vocabulary_loss_backward(h [R,C], weight [V,C], targets i32 [R], normalizer [1], upstream [1])
//   -> (dh, dweight [, loss [1], lse [R], correct [1], nll [1]]); attrs of vocabulary_loss, and
// takes_over (0; 1: the results of vocabulary_loss exist).
// Makes the logits of rows_at_once rows again, and of them what vocabulary_loss makes; then, in their
// place, their gradients:
//   dlogits = upstream * normalizer * (softmax(logits) - target), 0 in rows that do not count
//   dweight += dlogits' h, dh = dlogits weight
// Rows of dh are written behind the last use of the same rows of h.
#include "ops/reading.h"
#include "ops/vocabulary/vocabulary_rows.h"

namespace thimble {
namespace {

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs& attrs) {
  check_inputs("vocabulary_loss_backward", inputs, 5);
  const Vocabulary v = check_vocabulary("vocabulary_loss_backward", inputs, attrs);
  const DType statistics = statistics_dtype(inputs[0].dtype);
  check_type("vocabulary_loss_backward", "upstream", inputs[4], {{1}, statistics});
  std::vector<TensorType> result = {inputs[0], inputs[1]};
  if (attrs.integer("takes_over", 0) != 0)
    std::ranges::copy(v.results(statistics), std::back_inserter(result));
  return result;
}

// In the type that sums are done in: the logits of a row, then dweight.
Bytes reference_workspace(const Signature& s) {
  const int64_t classes = s.inputs[1].shape[0];
  return TensorType{{classes + s.inputs[1].elements()}, statistics_dtype(s.inputs[0].dtype)}
      .bytes();
}

void reference(const KernelArgs& args) {
  const Vocabulary v(args.inputs[0].type.shape, args.inputs[1].type.shape, *args.attrs);
  const CrossEntropy settings(v.classes, *args.attrs);
  const int32_t* targets = args.inputs[2].as<int32_t>();
  const bool takes_over = args.outputs.size() > 2;
  with_float_type(args.inputs[0].type.dtype, [&]<class T>(TypeTag<T>) {
    using Real = Accumulator<T>;
    const T* const weight = args.inputs[1].as<T>();
    const Real scale = *args.inputs[3].as<Real>() * *args.inputs[4].as<Real>();
    auto* const d = reinterpret_cast<Real*>(args.workspace);  // logits, then their gradients
    Real* const d_weight = d + v.classes;
    std::fill_n(d_weight, v.classes * v.width, Real{0});
    VocabularySums sums;
    for (int64_t r = 0; r < v.rows; ++r) {
      const T* const h = args.inputs[0].as<T>() + r * v.width;
      const double lse = vocabulary_row(v, settings, h, weight, targets[r], d, sums);
      if (takes_over) store(args.outputs[kBackwardLse].as<Real>(), r, static_cast<Real>(lse));
      const Real row_scale = settings.counts(targets[r]) ? scale : 0;
      for (int64_t c = 0; c < v.classes; ++c) {
        const double p = std::exp(static_cast<double>(d[c]) - lse);
        d[c] = row_scale * static_cast<Real>(p - settings.target(c, targets[r]));
        for (int64_t k = 0; k < v.width; ++k) d_weight[c * v.width + k] += d[c] * widen(h[k]);
      }
      vocabulary_row_gradient(v, d, weight, args.outputs[0].as<T>(), r, args.adds_into(0));
    }
    for (int64_t i = 0; i < v.classes * v.width; ++i) {
      store(args.outputs[1].as<T>(), i, d_weight[i], args.adds_into(1));
    }
    if (takes_over) store_sums<Real>(sums, args, kBackwardSums);
  });
}

Work work(const Signature& s) {
  return {3 * Vocabulary(s.inputs[0].shape, s.inputs[1].shape, s.attrs).flops(), 0};
}

std::vector<Sample> samples() {
  std::vector<Sample> result;
  for (const VocabularyCase& one : kVocabularyCases) {
    result.push_back(one.sample());
    result.back().attrs.set("takes_over", int64_t{1});
    result.back().inputs.push_back({{1}});
    result.back().fills.push_back({Fill::Kind::uniform, 0.5, 2});
  }
  result.push_back(result[1]);
  result.back().accumulate = 0b10;  // another use of the weight, or another run of time steps
  result.push_back(result[2]);
  result.back().accumulate = 0b110111;
  result.push_back(result[1]);
  result.back().attrs.set("takes_over", int64_t{0});
  return result;
}

}  // namespace

extern const OpDef op_vocabulary_loss_backward{
    .name = "vocabulary_loss_backward",
    .summary = "gradient of vocabulary_loss, and what it makes",
    .infer = infer,
    .reference = reference,
    .reference_workspace = reference_workspace,
    .work = work,
    .samples = samples,
    .recompute = Recompute::costly,
    .in_place = {{0, 0}},
    .reading = reads<Reading::exact, 0, 1>,
    .takes_over = true,
    .accumulates = 0b110111,
};

}  // namespace thimble
