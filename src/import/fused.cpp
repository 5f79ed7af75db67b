#include "import/fused.h"

#include "model/loss_rows.h"
#include "transform/fuse.h"

namespace thimble {
namespace {

// Everything of the model that names values of its graph, but outputs.
std::vector<ValueId*> named_values(Model& model) {
  std::vector<ValueId*> named = {&model.loss_normalizer, &model.rng,
                                 &model.carry_state,     &model.row_counts,
                                 &model.query_positions, &model.loss};
  for (Feed& feed : model.feeds) {
    named.push_back(&feed.value);
    named.push_back(&feed.staging);
  }
  for (ValueId& value : model.from_data) named.push_back(&value);
  for (Metric& metric : model.metrics) {
    named.push_back(&metric.sum);
    named.push_back(&metric.count);
  }
  if (model.late_factor) {
    for (auto* values : {&model.late_factor->arguments, &model.late_factor->sums}) {
      for (ValueId& value : *values) named.push_back(&value);
    }
    named.push_back(&model.late_factor->weight);
  }
  std::erase_if(named, [](const ValueId* value) { return !value->valid(); });
  return named;
}

}  // namespace

void fuse_model(Model& model, bool on_gpu) {
  const std::vector<ValueId*> named = named_values(model);
  std::vector<ValueId> read;
  for (const ValueId* value : named) read.push_back(*value);
  const Fused fused = fuse(model.graph, read);
  if (fused.now.empty()) return;
  for (Node& node : model.graph.nodes) {
    const bool scores_words = (node.op->tables & node.op->maps) != 0;
    if (on_gpu && scores_words) node.attrs.set("rows_at_once", kLossRowsOnGpu);
  }
  for (ValueId* value : named) *value = fused.now[value->at()];
  std::vector<Output> outputs;
  for (const Output& output : model.outputs) {
    const ValueId now = fused.now[output.value.at()];
    if (now.valid()) outputs.push_back({output.name, now});
  }
  model.outputs = std::move(outputs);
}

}  // namespace thimble
