#include "model/model.h"

#include <fmt/ranges.h>

#include "base/error.h"

namespace thimble {

const ModelFamily& find_model_family(std::string_view name) {
  std::vector<std::string_view> patterns;
  for (const ModelFamily* family : all_model_families()) {
    if (family->matches(name)) return *family;
    patterns.push_back(family->pattern);
  }
  user_error("there is no model '{}'; known: {} (see `thimble list`)", name,
             fmt::join(patterns, ", "));
}

Model build_model(ModelOptions options) {
  if (options.build == nullptr) {
    const ModelFamily& family = find_model_family(options.name);
    family.complete(options);
    options.build = family.build;
  }
  user_check(options.batch >= 1, "a batch needs at least one row, not {}", options.batch);
  user_check(options.classes >= 2, "a classifier needs at least two classes, not {}",
             options.classes);
  user_check(options.dropout >= 0 && options.dropout < 1, "dropout must be in [0, 1), not {}",
             options.dropout);
  user_check(options.label_smoothing >= 0 && options.label_smoothing < 1,
             "label smoothing must be in [0, 1), not {}", options.label_smoothing);
  Model model = options.build(options);
  model.options = options;
  model.graph.name = options.name;
  verify_graph(model.graph);
  return model;
}

}  // namespace thimble
