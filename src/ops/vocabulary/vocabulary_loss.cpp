// vocabulary_loss(h [R,C], weight [V,C], targets i32 [R], normalizer [1])
//   -> (loss [1], lse [R], correct [1], nll [1])
// attrs label_smoothing (0), ignore_index (-1), rows_at_once (0: the usual).
// Cross-entropy of softmax(h weight') against targets, as softmax_cross_entropy has it. The logits
// exist for rows_at_once rows at a time, in the workspace, and no longer. Over the rows that count:
//   loss     normalizer * sum of (1 - smoothing) * -log p_target + smoothing / V * sum of -log p
//   correct  how many have their largest logit at their target (of equal ones the first)
//   nll      sum of -log p_target
// A weight of 16 bits goes with an h of more where it is frozen: it has no gradient then.
// lse is the log-sum-exp of each row. All but h, weight and targets have the statistics dtype. The
// gradient makes the logits again, so that it can give all of these itself, to the same bits.
#include "graph/builder.h"
#include "ops/samples.h"
#include "ops/vocabulary/vocabulary_rows.h"

namespace thimble {
namespace {

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs& attrs) {
  check_inputs("vocabulary_loss", inputs, 4);
  const VocabularyGeometry v = check_vocabulary("vocabulary_loss", inputs, attrs, true);
  return v.results(statistics_dtype(inputs[0].dtype));
}

void gradient(GradientBuilder& g) {
  if (!g.upstream().valid()) return;
  if (!g.wants(1)) {  // frozen
    g.give(0,
           g.build().op("vocabulary_loss_backward_data",
                        {g.input(0), g.input(1), g.input(2), g.input(3), g.upstream()}, g.attrs()));
    return;
  }
  g.give_each(g.build().apply("vocabulary_loss_backward",
                              {g.input(0), g.input(1), g.input(2), g.input(3), g.upstream()},
                              g.attrs()));
}

// The logits of a row.
Bytes reference_workspace(const Signature& s) {
  return TensorType{{s.inputs[1].shape[0]}, statistics_dtype(s.inputs[0].dtype)}.bytes();
}

void reference(const KernelArgs& args) {
  const VocabularyGeometry v(args.inputs[0].type.shape, args.inputs[1].type.shape, *args.attrs);
  const CrossEntropy settings(v.classes, *args.attrs);
  with_float_type(args.inputs[0].type.dtype, [&]<class T>(TypeTag<T>) {
    using Real = Accumulator<T>;
    VocabularySums sums;
    with_float_type(args.inputs[1].type.dtype, [&]<class W>(TypeTag<W>) {
      for (int64_t r = 0; r < v.rows; ++r) {
        const double lse = vocabulary_row(v, settings, args.inputs[0].as<T>() + r * v.width,
                                          args.inputs[1].as<W>(), args.inputs[2].as<int32_t>()[r],
                                          reinterpret_cast<Real*>(args.workspace), sums);
        store(args.outputs[kOfLoss.lse()].as<Real>(), r, static_cast<Real>(lse));
      }
    });
    store_sums<Real>(sums, args, kOfLoss.sums());
  });
}

Work work(const Signature& s) {
  return {VocabularyGeometry(s.inputs[0].shape, s.inputs[1].shape, s.attrs).flops(), 0};
}

// The loss alone: what else there is has no gradient.
template <size_t kCase>
ValueId loss_of(Builder& build, std::span<const ValueId> in) {
  return build.op("vocabulary_loss", {in.begin(), in.end()}, kVocabularyCases[kCase].attrs());
}

std::vector<Sample> samples() {
  constexpr std::array builds = {loss_of<0>, loss_of<1>, loss_of<2>, loss_of<3>};
  std::vector<Sample> result;
  for (size_t i = 0; i < builds.size(); ++i) {
    result.push_back(kVocabularyCases[i].sample());
    result.back().differentiate = {0, 1};
    result.back().build = builds[i];
  }
  result.push_back(result[1]);  // a frozen head
  result.back().inputs[1].dtype = DType::bf16;
  result.back().differentiate = {0};
  return and_added(std::move(result), 0b1101, 1);
}

}  // namespace

extern const OpDef op_vocabulary_loss{
    .name = "vocabulary_loss",
    .summary = "projection onto a vocabulary and its cross-entropy, a few rows at a time",
    .infer = infer,
    .gradient = gradient,
    .reference = reference,
    .reference_workspace = reference_workspace,
    .work = work,
    .samples = samples,
    .recompute = Recompute::costly,
    .maps = 1u << 1,
    .tables = 1u << 1,
    .accumulates = 0b1101,
};

}  // namespace thimble
