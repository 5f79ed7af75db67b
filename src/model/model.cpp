#include "model/model.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "base/error.h"

namespace thimble {
namespace {

constexpr std::array<std::string_view, 3> kNorms = {"batch", "group", "carried"};

bool normalizes(const Graph& graph) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [](const Node& node) {
    return node.op->name == "batch_norm" || node.op->name == "group_norm";
  });
}

}  // namespace

std::string_view name_of(Norm norm) { return kNorms[static_cast<size_t>(norm)]; }

Norm parse_norm(std::string_view name) {
  for (size_t n = 0; n < kNorms.size(); ++n) {
    if (kNorms[n] == name) return static_cast<Norm>(n);
  }
  user_error("there is no normalisation '{}'; known: {}", name, fmt::join(kNorms, ", "));
}

DType parse_precision(std::string_view name) {
  if (name == "fp32") return DType::f32;
  if (name == "fp16") return DType::f16;
  if (name == "bf16") return DType::bf16;
  user_error("there is no precision '{}'; known: fp32, fp16, bf16", name);
}

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
  user_check(options.norm == Norm::batch || normalizes(model.graph),
             "{} has no layers that normalise; leave --norm out", options.name);
  model.options = options;
  model.graph.name = options.name;
  verify_graph(model.graph);
  return model;
}

}  // namespace thimble
