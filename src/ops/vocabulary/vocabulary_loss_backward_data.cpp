// vocabulary_loss_backward_data(h [R,C], weight [V,C], targets i32 [R], normalizer [1], upstream [1])
//   -> (dh [, loss [1], lse [R], correct [1], nll [1]]); attrs of vocabulary_loss_backward.
// That op without the gradient of the weight, for a frozen one, which may have 16 bits though h has
// more.
#include "ops/reading.h"
#include "ops/vocabulary/vocabulary_rows.h"

namespace thimble {
namespace {

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs& attrs) {
  check_inputs("vocabulary_loss_backward_data", inputs, 5);
  const Vocabulary v = check_vocabulary("vocabulary_loss_backward_data", inputs, attrs, true);
  const DType statistics = statistics_dtype(inputs[0].dtype);
  check_type("vocabulary_loss_backward_data", "upstream", inputs[4], {{1}, statistics});
  std::vector<TensorType> result = {inputs[0]};
  if (attrs.integer("takes_over", 0) != 0)
    std::ranges::copy(v.results(statistics), std::back_inserter(result));
  return result;
}

// The logits of a row.
Bytes reference_workspace(const Signature& s) {
  return TensorType{{s.inputs[1].shape[0]}, statistics_dtype(s.inputs[0].dtype)}.bytes();
}

void reference(const KernelArgs& args) {
  const Vocabulary v(args.inputs[0].type.shape, args.inputs[1].type.shape, *args.attrs);
  const CrossEntropy settings(v.classes, *args.attrs);
  const int32_t* targets = args.inputs[2].as<int32_t>();
  const bool takes_over = args.outputs.size() > 1;
  with_float_type(args.inputs[0].type.dtype, [&]<class T>(TypeTag<T>) {
    using Real = Accumulator<T>;
    const Real scale = *args.inputs[3].as<Real>() * *args.inputs[4].as<Real>();
    auto* const d = reinterpret_cast<Real*>(args.workspace);  // logits, then their gradients
    VocabularySums sums;
    with_float_type(args.inputs[1].type.dtype, [&]<class W>(TypeTag<W>) {
      const W* const weight = args.inputs[1].as<W>();
      for (int64_t r = 0; r < v.rows; ++r) {
        const double lse = vocabulary_row(v, settings, args.inputs[0].as<T>() + r * v.width, weight,
                                          targets[r], d, sums);
        if (takes_over) store(args.outputs[kDataLse].as<Real>(), r, static_cast<Real>(lse));
        const Real row_scale = settings.counts(targets[r]) ? scale : 0;
        for (int64_t c = 0; c < v.classes; ++c) {
          const double p = std::exp(static_cast<double>(d[c]) - lse);
          d[c] = row_scale * static_cast<Real>(p - settings.target(c, targets[r]));
        }
        vocabulary_row_gradient(v, d, weight, args.outputs[0].as<T>(), r, args.adds_into(0));
      }
    });
    if (takes_over) store_sums<Real>(sums, args, kDataSums);
  });
}

Work work(const Signature& s) {
  return {2 * Vocabulary(s.inputs[0].shape, s.inputs[1].shape, s.attrs).flops(), 0};
}

std::vector<Sample> samples() {
  std::vector<Sample> result;
  for (const VocabularyCase& one : kVocabularyCases) {
    result.push_back(one.sample());
    result.back().attrs.set("takes_over", int64_t{1});
    result.back().inputs.push_back({{1}});
    result.back().fills.push_back({Fill::Kind::uniform, 0.5, 2});
  }
  result.push_back(result[2]);
  result.back().accumulate = 0b11011;
  result.push_back(result[1]);
  result.back().inputs[1].dtype = DType::bf16;
  result.push_back(result[1]);
  result.back().attrs.set("takes_over", int64_t{0});
  return result;
}

}  // namespace

extern const OpDef op_vocabulary_loss_backward_data{
    .name = "vocabulary_loss_backward_data",
    .summary = "gradient of vocabulary_loss for its rows alone, and what it makes",
    .infer = infer,
    .reference = reference,
    .reference_workspace = reference_workspace,
    .work = work,
    .samples = samples,
    .recompute = Recompute::costly,
    .in_place = {{0, 0}},
    .reading = reads<Reading::exact, 0, 1>,
    .takes_over = true,
    .accumulates = 0b11011,
};

}  // namespace thimble
