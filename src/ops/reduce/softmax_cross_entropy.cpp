// softmax_cross_entropy(logits [R,C], labels i32 [R], normalizer [1]) -> (loss [1], lse [R])
// attrs label_smoothing (0), ignore_index (-1).
//   loss = normalizer * sum over counted rows of -sum_c target_c * log softmax(logits)_c
// normalizer is 1 / counted rows of the whole batch, so that microbatches add up to a mean. lse,
// the log-sum-exp of each row, is saved for the gradient. All but logits and labels have the
// statistics dtype.
#include <algorithm>
#include <array>
#include <cmath>

#include "graph/builder.h"
#include "ops/reduce/labels.h"
#include "ops/reduce/last_axis.h"
#include "ops/reference.h"
#include "ops/row_rules.h"
#include "ops/samples.h"
#include "ops/work.h"

namespace thimble {
namespace {

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs& attrs) {
  check_inputs("softmax_cross_entropy", inputs, 3);
  check_labelled("softmax_cross_entropy", inputs[0], inputs[1]);
  const DType statistics = statistics_dtype(inputs[0].dtype);
  check_type("softmax_cross_entropy", "normalizer", inputs[2], {{1}, statistics});
  const double smoothing = attrs.real("label_smoothing", 0);
  user_check(smoothing >= 0 && smoothing <= 1,
             "[softmax_cross_entropy] label_smoothing lies in [0, 1], got {}", smoothing);
  return {{{1}, statistics}, {{inputs[0].shape[0]}, statistics}};
}

void gradient(GradientBuilder& g) {
  if (!g.upstream().valid() || !g.wants(0)) return;
  g.give(0,
         g.build().op("softmax_cross_entropy_backward",
                      {g.input(0), g.output(1), g.input(1), g.input(2), g.upstream()}, g.attrs()));
}

void reference(const KernelArgs& args) {
  const Rows rows = rows_of(args.inputs[0].type.shape);
  const CrossEntropy settings(rows.columns, *args.attrs);
  const int32_t* labels = args.inputs[1].as<int32_t>();
  with_float_type(args.inputs[0].type.dtype, [&]<class T>(TypeTag<T>) {
    using Real = Accumulator<T>;
    double loss = 0;
    for (int64_t r = 0; r < rows.count; ++r) {
      const T* row = args.inputs[0].as<T>() + r * rows.columns;
      const auto logit = [&](int64_t c) { return static_cast<double>(row[c]); };
      double largest = logit(0), sum = 0, expected = 0;
      for (int64_t c = 1; c < rows.columns; ++c) largest = std::max(largest, logit(c));
      for (int64_t c = 0; c < rows.columns; ++c) {
        sum += std::exp(logit(c) - largest);
        // A masked logit may be -inf where nothing is expected of it.
        const double target = settings.target(c, labels[r]);
        if (target != 0) expected += target * logit(c);
      }
      const double lse = largest + std::log(sum);
      store(args.outputs[1].as<Real>(), r, static_cast<Real>(lse));
      // Targets sum to 1, so the row's loss is lse minus the expected logit.
      if (settings.counts(labels[r])) loss += lse - expected;
    }
    const double normalizer = static_cast<double>(*args.inputs[2].as<Real>());
    store(args.outputs[0].as<Real>(), 0, static_cast<Real>(normalizer * loss), args.adds_into(0));
  });
}

struct Case {
  int64_t rows, classes;
  double lowest_label, smoothing;
  int64_t ignored;
  Attrs attrs() const { return {{"label_smoothing", smoothing}, {"ignore_index", ignored}}; }
};
constexpr std::array<Case, 3> kCases = {
    {{6, 7, 0, 0, -1}, {5, 10, -1, 0.1, -1}, {9, 33, 0, 0.3, 4}}};

// The loss alone: the saved lse has no gradient.
template <size_t kCase>
ValueId loss_of(Builder& build, std::span<const ValueId> in) {
  return build.op("softmax_cross_entropy", {in.begin(), in.end()}, kCases[kCase].attrs());
}

std::vector<Sample> samples() {
  constexpr std::array builds = {loss_of<0>, loss_of<1>, loss_of<2>};
  std::vector<Sample> result;
  for (size_t i = 0; i < builds.size(); ++i) {
    const Case& c = kCases[i];
    const Fill labels = {Fill::Kind::labels, c.lowest_label, static_cast<double>(c.classes)};
    result.push_back({.inputs = {{{c.rows, c.classes}}, {{c.rows}, DType::i32}, {{1}}},
                      .attrs = c.attrs(),
                      .fills = {{}, labels, {Fill::Kind::uniform, 0.1, 0.2}},
                      .differentiate = {0},
                      .build = builds[i]});
  }
  return and_added(std::move(result));
}

// The loss is a sum over rows; what is kept beside it is theirs.
RowFlow rows(const RowCall& call, size_t output) {
  constexpr std::array<int, 3> kAxes = {1, 0, -1};
  return output == 0 ? rows_added_up(call, kAxes) : rows_of_joint_slices(call, output, kAxes);
}

}  // namespace

extern const OpDef op_softmax_cross_entropy{
    .name = "softmax_cross_entropy",
    .summary = "cross-entropy of softmax(logits) against labels, with smoothing and ignored rows",
    .infer = infer,
    .gradient = gradient,
    .reference = reference,
    .work = flops_per_input<5>,
    .samples = samples,
    .rows = rows,
    .logits = 0,
    .accumulates = 1,
};

}  // namespace thimble
