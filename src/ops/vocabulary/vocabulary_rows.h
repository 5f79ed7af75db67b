// Shared by the records of vocabulary_loss and of its gradient.
#pragma once

#include <array>
#include <cmath>

#include "ops/reduce/labels.h"
#include "ops/reference.h"
#include "ops/vocabulary/vocabulary_geometry.h"

namespace thimble {

// Checks (h [R,C], weight [V,C], targets i32 [R], normalizer [1]), with which both ops begin.
// `keeps_weight_narrow`: the weight may have 16 bits though h has more.
inline VocabularyGeometry check_vocabulary(std::string_view op, std::span<const TensorType> inputs,
                                           const Attrs& attrs, bool keeps_weight_narrow = false) {
  check_floating_rank(op, "h [R,C]", inputs[0], 2);
  check_floating_rank(op, "weight [V,C]", inputs[1], 2);
  const DType dtype = inputs[0].dtype;
  const bool narrower = keeps_weight_narrow && size_of(dtype) > 2 && size_of(inputs[1].dtype) == 2;
  check_type(op, "weight", inputs[1],
             {{inputs[1].shape[0], inputs[0].shape[1]}, narrower ? inputs[1].dtype : dtype});
  check_type(op, "targets", inputs[2], {{inputs[0].shape[0]}, DType::i32});
  check_type(op, "normalizer", inputs[3], {{1}, statistics_dtype(dtype)});
  const double smoothing = attrs.real("label_smoothing", 0);
  user_check(smoothing >= 0 && smoothing <= 1, "[{}] label_smoothing lies in [0, 1], got {}", op,
             smoothing);
  user_check(attrs.integer("rows_at_once", 0) >= 0,
             "[{}] rows_at_once is 1 at least, or 0 for the usual, got {}", op,
             attrs.integer("rows_at_once", 0));
  return {inputs[0].shape, inputs[1].shape, attrs};
}

// Sums over the rows that count.
struct VocabularySums {
  double loss = 0;  // before the normalizer
  int64_t correct = 0;
  double nll = 0;  // of the targets themselves, without smoothing
};

// The plain kernels' part of one row: its logits, in `logits` [V], and what it adds to the sums.
// Returns the row's log-sum-exp.
template <class T, class W>
double vocabulary_row(const VocabularyGeometry& v, const CrossEntropy& settings, const T* h,
                      const W* weight, int32_t target, Accumulator<T>* logits,
                      VocabularySums& sums) {
  using Real = Accumulator<T>;
  int64_t best = 0;
  for (int64_t c = 0; c < v.classes; ++c) {
    logits[c] = 0;
    for (int64_t k = 0; k < v.width; ++k) {
      logits[c] += widen(h[k]) * static_cast<Real>(widen(weight[c * v.width + k]));
    }
    if (logits[c] > logits[best]) best = c;
  }
  const auto logit = [&](int64_t c) { return static_cast<double>(logits[c]); };
  double sum = 0, expected = 0;
  for (int64_t c = 0; c < v.classes; ++c) {
    sum += std::exp(logit(c) - logit(best));
    expected += settings.target(c, target) * logit(c);
  }
  const double lse = logit(best) + std::log(sum);
  if (settings.counts(target)) {
    sums.loss += lse - expected;
    sums.nll += lse - logit(target);
    sums.correct += best == target ? 1 : 0;
  }
  return lse;
}

// Writes or adds loss, correct and nll into the outputs of these numbers.
template <class Real>
void store_sums(const VocabularySums& sums, const KernelArgs& args,
                const std::array<size_t, 3>& outputs) {
  const auto normalizer = static_cast<double>(*args.inputs[3].as<Real>());
  const std::array<double, 3> values = {normalizer * sums.loss, static_cast<double>(sums.correct),
                                        sums.nll};
  for (size_t k = 0; k < values.size(); ++k) {
    store(args.outputs[outputs[k]].as<Real>(), 0, static_cast<Real>(values[k]),
          args.adds_into(outputs[k]));
  }
}

// The plain kernels' part of a row of dh, of gradients of its logits.
template <class T, class W>
void vocabulary_row_gradient(const VocabularyGeometry& v, const Accumulator<T>* d, const W* weight,
                             T* dh, int64_t row, bool add) {
  using Real = Accumulator<T>;
  for (int64_t k = 0; k < v.width; ++k) {
    Real sum = 0;
    for (int64_t c = 0; c < v.classes; ++c) {
      sum += d[c] * static_cast<Real>(widen(weight[c * v.width + k]));
    }
    store(dh, row * v.width + k, sum, add);
  }
}

// The cases both ops are checked on: one chunk, several with a shorter last one, a row at a time.
struct VocabularyCase {
  int64_t rows, width, classes;
  double lowest_target, smoothing;
  int64_t ignored, at_once;

  Attrs attrs() const {
    return {{"label_smoothing", smoothing}, {"ignore_index", ignored}, {"rows_at_once", at_once}};
  }
  // Small weights, so that no class takes all.
  Sample sample() const {
    return {.inputs = {{{rows, width}}, {{classes, width}}, {{rows}, DType::i32}, {{1}}},
            .attrs = attrs(),
            .fills = {{},
                      {Fill::Kind::uniform, -0.5, 0.5},
                      {Fill::Kind::labels, lowest_target, static_cast<double>(classes)},
                      {Fill::Kind::uniform, 0.1, 0.2}}};
  }
};
inline constexpr std::array<VocabularyCase, 4> kVocabularyCases = {{{6, 5, 7, 0, 0, -1, 0},
                                                                    {11, 8, 40, -1, 0.1, -1, 4},
                                                                    {9, 16, 33, 0, 0.3, 4, 3},
                                                                    {3, 4, 2, 0, 0, 0, 1}}};

}  // namespace thimble
