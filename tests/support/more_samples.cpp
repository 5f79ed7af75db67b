#include "support/more_samples.h"

#include <algorithm>

#include "base/error.h"

namespace thimble {
namespace {

// The sample with every tensor that is as its first in another shape; none where the op refuses it, or
// where a shape says more than how many there are.
void add_resized(const OpDef& op, const Sample& sample, const Shape& shape,
                 std::vector<Sample>& result) {
  if (sample.inputs.empty() || op.view || op.collective) return;
  const Shape before = sample.inputs[0].shape;
  if (before.elements() <= 1 || sample.inputs[0].dtype != DType::f32) return;
  Sample resized = sample;
  resized.differentiate = {};
  resized.build = nullptr;
  for (TensorType& input : resized.inputs) {
    if (input.shape == before && is_floating(input.dtype)) {
      input.shape = shape;
    } else if (input.elements() > 3) {  // another size follows from the first
      return;
    }
  }
  try {
    const std::vector<TensorType> outputs = op.infer(resized.inputs, resized.attrs);
    const std::vector<TensorType> usual = op.infer(sample.inputs, sample.attrs);
    for (size_t k = 0; k < outputs.size(); ++k) {
      // Attrs that hold a shape or places in one stay as they are, and so would the output.
      if (outputs[k].shape == usual[k].shape && usual[k].elements() > 1) return;
    }
  } catch (const UserError&) {
    return;
  }
  result.push_back(std::move(resized));
}

std::vector<Sample> resized(const OpDef& op, std::initializer_list<Shape> shapes) {
  std::vector<Sample> result;
  const std::vector<Sample> samples = op.samples();
  for (const Shape& shape : shapes) {
    // The plainest and the last: attrs differ, mostly.
    for (const Sample* sample : {&samples.front(), &samples.back()}) {
      if (sample == &samples.back() && samples.size() == 1) continue;
      if (sample->inputs.empty() || sample->inputs[0].shape.rank() != shape.rank()) continue;
      add_resized(op, *sample, shape, result);
    }
  }
  return result;
}

// Of five classes, one in six labels is none, and one in six the ignored one.
void ignore_one(const OpDef& op, std::vector<Sample>& result) {
  std::vector<Sample> samples = op.samples();
  const auto reads_ignored = [](const Sample& s) { return s.attrs.has("ignore_index"); };
  const auto found = std::ranges::find_if(samples, reads_ignored);
  if (found == samples.end()) return;
  constexpr int64_t kClasses = 5, kRows = 61;
  Sample sample = *found;
  const bool is_labels = sample.inputs[0].dtype == DType::i32;
  const Shape classes = sample.inputs[is_labels ? 0 : 0].shape;
  if (!is_labels && op.name.starts_with("softmax_cross_entropy")) {
    const int64_t rows = classes[0];
    for (TensorType& input : sample.inputs) {
      if (input.shape == Shape{rows, classes[1]}) input.shape = {kRows, kClasses};
      if (input.shape == Shape{rows}) input.shape = {kRows};
    }
  } else if (!is_labels) {  // over a vocabulary
    const int64_t rows = classes[0], width = classes[1];
    for (TensorType& input : sample.inputs) {
      if (input.shape == Shape{rows, width}) {
        input.shape = {kRows, width};
      } else if (input.shape.rank() == 2) {
        input.shape = {kClasses, width};
      } else if (input.shape == Shape{rows}) {
        input.shape = {kRows};
      }
    }
  }
  sample.attrs.set("ignore_index", int64_t{2});
  sample.differentiate = {};
  sample.build = nullptr;
  sample.fills.resize(sample.inputs.size());
  for (size_t i = 0; i < sample.inputs.size(); ++i) {
    if (sample.inputs[i].dtype == DType::i32) sample.fills[i] = {Fill::Kind::labels, -1, kClasses};
  }
  result.push_back(std::move(sample));
}

}  // namespace

std::vector<Sample> more_samples(const OpDef& op) {
  std::vector<Sample> result =
      resized(op, {{1}, {61}, {1, 1}, {7, 23}, {1, 1, 1}, {3, 5, 19}, {1, 1, 1, 1}, {2, 3, 5, 17}});
  ignore_one(op, result);
  return result;
}

std::vector<Sample> large_samples(const OpDef& op) {
  return resized(op, {{100'003}, {211, 467}, {7, 113, 127}, {3, 31, 37, 29}});
}

}  // namespace thimble
