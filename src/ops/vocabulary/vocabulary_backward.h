// The record of vocabulary_loss_backward, and of the same without the gradient of the weight:
// vocabulary_loss_backward_data, for a frozen weight, which may have 16 bits though h has more.
#pragma once

#include "ops/reading.h"
#include "ops/vocabulary/vocabulary_rows.h"

namespace thimble {

template <bool kWeighs>
struct VocabularyBackward {
  static constexpr std::string_view kName =
      kWeighs ? "vocabulary_loss_backward" : "vocabulary_loss_backward_data";
  static constexpr LossOutputs kLoss = loss_outputs(kWeighs);

  static std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs& attrs) {
    check_inputs(kName, inputs, 5);
    const VocabularyGeometry v = check_vocabulary(kName, inputs, attrs, !kWeighs);
    const DType statistics = statistics_dtype(inputs[0].dtype);
    check_type(kName, "upstream", inputs[4], {{1}, statistics});
    std::vector<TensorType> result(inputs.begin(), inputs.begin() + kLoss.gradients);
    if (attrs.integer("takes_over", 0) != 0)
      std::ranges::copy(v.results(statistics), std::back_inserter(result));
    return result;
  }

  // In the type that sums are done in: the logits of a row, then dweight.
  static Bytes workspace(const Signature& s) {
    const int64_t d_weight = kWeighs ? s.inputs[1].elements() : 0;
    return TensorType{{s.inputs[1].shape[0] + d_weight}, statistics_dtype(s.inputs[0].dtype)}
        .bytes();
  }

  static void reference(const KernelArgs& args) {
    with_float_type(args.inputs[0].type.dtype, [&]<class T>(TypeTag<T>) {
      with_float_type(args.inputs[1].type.dtype, [&]<class W>(TypeTag<W>) { run<T, W>(args); });
    });
  }

  template <class T, class W>
  static void run(const KernelArgs& args) {
    using Real = Accumulator<T>;
    const VocabularyGeometry v(args.inputs[0].type.shape, args.inputs[1].type.shape, *args.attrs);
    const CrossEntropy settings(v.classes, *args.attrs);
    const int32_t* const targets = args.inputs[2].as<int32_t>();
    const bool takes_over = args.outputs.size() > kLoss.gradients;
    const W* const weight = args.inputs[1].as<W>();
    const Real scale = *args.inputs[3].as<Real>() * *args.inputs[4].as<Real>();
    auto* const d = reinterpret_cast<Real*>(args.workspace);  // logits, then their gradients
    Real* const d_weight = d + v.classes;
    const int64_t weights = kWeighs ? v.classes * v.width : 0;
    std::fill_n(d_weight, weights, Real{0});
    VocabularySums sums;
    for (int64_t r = 0; r < v.rows; ++r) {
      const T* const h = args.inputs[0].as<T>() + r * v.width;
      const double lse = vocabulary_row(v, settings, h, weight, targets[r], d, sums);
      if (takes_over) store(args.outputs[kLoss.lse()].as<Real>(), r, static_cast<Real>(lse));
      const Real row_scale = settings.counts(targets[r]) ? scale : 0;
      for (int64_t c = 0; c < v.classes; ++c) {
        const double p = std::exp(static_cast<double>(d[c]) - lse);
        d[c] = row_scale * static_cast<Real>(p - settings.target(c, targets[r]));
        for (int64_t k = 0; kWeighs && k < v.width; ++k)
          d_weight[c * v.width + k] += d[c] * widen(h[k]);
      }
      vocabulary_row_gradient(v, d, weight, args.outputs[0].as<T>(), r, args.adds_into(0));
    }
    for (int64_t i = 0; i < weights; ++i) {
      store(args.outputs[1].as<T>(), i, d_weight[i], args.adds_into(1));
    }
    if (takes_over) store_sums<Real>(sums, args, kLoss.sums());
  }

  static Work work(const Signature& s) {
    return {(kWeighs ? 3 : 2) *
                VocabularyGeometry(s.inputs[0].shape, s.inputs[1].shape, s.attrs).flops(),
            0};
  }

  static Sample sample(size_t of) {
    Sample one = kVocabularyCases[of].sample();
    one.attrs.set("takes_over", int64_t{1});
    one.inputs.push_back({{1}});
    one.fills.push_back({Fill::Kind::uniform, 0.5, 2});
    return one;
  }
  static std::vector<Sample> samples() {
    std::vector<Sample> result;
    for (size_t i = 0; i < kVocabularyCases.size(); ++i) result.push_back(sample(i));
    result.push_back(sample(2));
    result.back().accumulate = kAccumulates;
    result.push_back(sample(1));
    if (kWeighs) {
      result.back().accumulate = 0b10;  // another use of the weight, or another run of time steps
    } else {
      result.back().inputs[1].dtype = DType::bf16;
    }
    result.push_back(sample(1));
    result.back().attrs.set("takes_over", int64_t{0});
    return result;
  }

  // All but lse.
  static constexpr uint32_t kAccumulates = kWeighs ? 0b110111 : 0b11011;
  static OpDef record(std::string_view summary) {
    return {.name = kName,
            .summary = summary,
            .infer = infer,
            .reference = reference,
            .reference_workspace = workspace,
            .work = work,
            .samples = samples,
            .recompute = Recompute::costly,
            .in_place = {{0, 0}},
            .reading = reads<Reading::exact, 0, 1>,
            .takes_over = true,
            .accumulates = kAccumulates};
  }
};

}  // namespace thimble
