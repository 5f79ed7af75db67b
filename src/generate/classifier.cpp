#include "generate/classifier.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/number/dtype.h"

namespace thimble {
namespace {

// One row of logits a record; invalid: the model has none.
ValueId logits_of_rows(const Model& model) {
  const auto found = std::ranges::find(model.outputs, "logits", &Output::name);
  if (found == model.outputs.end()) return {};
  const Shape& shape = model.graph[found->value].type.shape;
  return shape.rank() == 2 && shape[0] == model.rows() ? found->value : ValueId();
}

std::vector<float> floats_of(std::span<const std::byte> bytes, DType dtype) {
  std::vector<float> numbers;
  with_float_type(dtype, [&]<class T>(TypeTag<T>) {
    const std::span<const T> made = {reinterpret_cast<const T*>(bytes.data()),
                                     bytes.size() / sizeof(T)};
    for (const T number : made) numbers.push_back(static_cast<float>(number));
  });
  return numbers;
}

}  // namespace

std::vector<double> probabilities_of(std::span<const float> logits) {
  std::vector<double> shares(logits.begin(), logits.end());
  const double most = *std::ranges::max_element(shares);
  double sum = 0;
  for (double& share : shares) sum += share = std::exp(share - most);
  for (double& share : shares) share /= sum;
  return shares;
}

Classifier::Classifier(TrainedModel& trained)
    : trained_(trained), variants_(plan_evaluation(trained.planned())) {
  const Model& model = variants_.front()->model;
  logits_ = logits_of_rows(model);
  user_check(logits_.valid(), "{} gives no class to a record; choose a run of a classifier",
             model.options.name);
  bound_ = std::make_unique<BoundStep>(trained_.bind(*variants_.front()));
}

void Classifier::classify(const BatchSource& source, const Take& take) {
  Program& program = bound_->program();
  const uint64_t seed = trained_.seed();
  const int64_t count = source.test_count();
  for (int64_t first = 0; first < count;) {
    bound_->set_own_constants(seed);
    bound_->feed_rng(seed, 0, 0);
    const TestRows filled = source.fill_test(program, bound_->model(), first);
    bound_->feed_row_counts(filled.rows);
    std::vector<float> logits;
    // The step's results are its loss and its metrics: others reuse the bytes of logits.
    program.run_until(program.calls_until(logits_), [&](size_t call) {
      const Node& node = bound_->model().graph[bound_->plan().calls[call].node];
      const auto made = std::ranges::find(node.outputs, logits_);
      if (made == node.outputs.end()) return;
      const HostMapping mapping =
          program.output_of(call, static_cast<size_t>(made - node.outputs.begin()));
      logits = floats_of(mapping.bytes(), bound_->model().graph[logits_].type.dtype);
    });
    const size_t classes = logits.size() / static_cast<size_t>(bound_->model().rows());
    for (int64_t row = 0; row < filled.rows; ++row) {
      const std::span<const float> one(logits.data() + static_cast<size_t>(row) * classes, classes);
      take(first + row, probabilities_of(one));
    }
    first += filled.rows;
  }
}

}  // namespace thimble
