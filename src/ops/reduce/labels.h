// Shared by the ops over (logits [R,C], labels [R]): types, and which rows count.
#pragma once

#include "ops/checks.h"

namespace thimble {

inline void check_labelled(std::string_view op, const TensorType& logits,
                           const TensorType& labels) {
  check_floating_rank(op, "logits [R,C]", logits, 2);
  check_type(op, "labels", labels, {{logits.shape[0]}, DType::i32});
}

// The settings of softmax_cross_entropy.
struct CrossEntropy {
  int64_t classes;
  double smoothing;
  int64_t ignored;

  CrossEntropy(int64_t class_count, const Attrs& attrs)
      : classes(class_count),
        smoothing(attrs.real("label_smoothing", 0)),
        ignored(attrs.integer("ignore_index", -1)) {}

  // Labels out of range count as ignored; whoever fills them has checked them.
  bool counts(int32_t label) const { return label != ignored && label >= 0 && label < classes; }
  // The target distribution of a counted row: 1 - smoothing on its label, the rest spread evenly.
  double target(int64_t c, int32_t label) const {
    return smoothing / static_cast<double>(classes) + (c == label ? 1 - smoothing : 0);
  }
};

}  // namespace thimble
