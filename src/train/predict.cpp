#include "train/predict.h"

#include <algorithm>
#include <vector>

#include "base/error.h"

namespace thimble {
namespace {

bool has_rows(const Output& output, const Model& model) {
  const Shape& shape = model.graph[output.value].type.shape;
  return shape.rank() > 0 && shape[0] == model.rows();
}

std::vector<const Output*> outputs_of_rows(const Model& model) {
  std::vector<const Output*> outputs;
  for (const Output& output : model.outputs) {
    if (has_rows(output, model)) outputs.push_back(&output);
  }
  user_check(
      !outputs.empty(),
      "{} has no result with a row for each record; plan it with --fuse off where its loss is "
      "computed together with its logits",
      model.options.name);
  return outputs;
}

}  // namespace

std::vector<bool> fields_predicted_from(const Model& model) {
  std::vector<bool> read(model.graph.values.size(), false);
  for (const Output* output : outputs_of_rows(model)) read[output->value.at()] = true;
  for (size_t n = model.graph.nodes.size(); n-- > 0;) {
    const Node& node = model.graph.nodes[n];
    const bool made = std::ranges::any_of(node.outputs, [&](ValueId v) { return read[v.at()]; });
    for (const ValueId input : node.inputs) {
      if (made && input.valid()) read[input.at()] = true;
    }
  }
  std::vector<bool> fields;
  for (const Feed& feed : model.feeds) fields.push_back(read[feed.value.at()]);
  return fields;
}

void predict(BoundStep& evaluator, const BatchSource& source, uint64_t seed,
             const std::function<void(const Predicted&)>& take) {
  Program& program = evaluator.program();
  const Model& model = evaluator.model();
  const std::vector<const Output*> outputs = outputs_of_rows(model);
  // The step's results are its loss and its metrics: others reuse the bytes of outputs.
  size_t calls = 0;
  for (const Output* output : outputs) calls = std::max(calls, program.calls_until(output->value));
  const int64_t count = source.test_count();
  for (int64_t first = 0; first < count;) {
    evaluator.set_own_constants(seed);
    evaluator.feed_rng(seed, 0, 0);
    const TestRows filled = source.fill_test(program, model, first);
    if (filled.rows == 0) return;
    evaluator.feed_row_counts(filled.rows);
    program.run_until(calls, [&](size_t call) {
      const Node& node = model.graph[evaluator.plan().calls[call].node];
      for (const Output* output : outputs) {
        const auto made = std::ranges::find(node.outputs, output->value);
        if (made == node.outputs.end()) continue;
        const HostMapping mapping =
            program.output_of(call, static_cast<size_t>(made - node.outputs.begin()));
        take({output, model.graph[output->value].type, mapping.bytes(), filled.rows});
      }
    });
    first += filled.rows;
  }
}

}  // namespace thimble
