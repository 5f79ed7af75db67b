// The geometry of vocabulary_loss and its gradient: rows are projected onto a vocabulary a few at a
// time, so that logits never exist whole.
#pragma once

#include <algorithm>
#include <array>

#include "graph/op.h"

namespace thimble {

struct VocabularyGeometry {
  int64_t rows, width, classes;
  int64_t at_once;  // rows whose logits exist at a time; the last may be fewer

  // h [R,C], weight [V,C]. By default logits take a quarter of the bytes that the weight does.
  // Chunks of rows are as equal as may be.
  VocabularyGeometry(const Shape& h, const Shape& weight, const Attrs& attrs)
      : rows(h[0]), width(h[1]), classes(weight[0]) {
    const int64_t asked = attrs.integer("rows_at_once", 0);
    const int64_t usual = std::max<int64_t>(64, width / 4);
    at_once = std::clamp<int64_t>(asked > 0 ? asked : usual, 1, std::max<int64_t>(1, rows));
    const int64_t chunks = (rows + at_once - 1) / at_once;
    if (chunks > 0) at_once = (rows + chunks - 1) / chunks;
  }

  // Rows of the last chunk.
  int64_t rest() const { return rows - (rows - 1) / at_once * at_once; }

  // The results of vocabulary_loss: loss, lse, correct, nll.
  std::vector<TensorType> results(DType dtype) const {
    return {{{1}, dtype}, {{rows}, dtype}, {{1}, dtype}, {{1}, dtype}};
  }

  // Of one product of all rows with the weight.
  double flops() const {
    return 2 * static_cast<double>(rows) * static_cast<double>(width * classes);
  }
};

// Where those results are among an op's outputs: behind its own gradients.
struct LossOutputs {
  size_t gradients;

  size_t lse() const { return gradients + 1; }
  std::array<size_t, 3> sums() const { return {gradients, gradients + 2, gradients + 3}; }
};
inline constexpr LossOutputs kOfLoss = {0};
// Of vocabulary_loss_backward, and of that without the gradient of the weight.
constexpr LossOutputs loss_outputs(bool weighs) { return {weighs ? size_t{2} : size_t{1}}; }

}  // namespace thimble
