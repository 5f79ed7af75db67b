#include "model/model.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "base/error.h"

namespace thimble {
namespace {

constexpr std::array<std::string_view, 3> kNorms = {"batch", "group", "carried"};

bool normalizes(const Graph& graph) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(),
                     [](const Node& node) { return node.op->normalizes; });
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

ModelOptions options_for(ModelOptions options, const VariantShape& shape) {
  options.batch = shape.rows;
  if (shape.length > 0) options.length = shape.length;
  options.training = shape.purpose == Purpose::training;
  return options;
}

int64_t Model::rows() const {
  const Feed& first = feeds.front();
  return graph[first.value].type.shape[first.row_axis];
}

const Feed& Model::feed(std::string_view field) const {
  const auto found = std::ranges::find(feeds, field, &Feed::field);
  if (found == feeds.end()) {
    internal_check(false, fmt::format("{} reads no '{}'", options.name, field));
  }
  return *found;
}

std::vector<RecordField> fields_read(const Model& model) {
  std::vector<RecordField> fields;
  for (const Feed& feed : model.feeds) {
    const TensorType& type = model.graph[feed.value].type;
    std::vector<int64_t> dims(type.shape.dims().begin(), type.shape.dims().end());
    dims.erase(dims.begin() + feed.row_axis);
    fields.push_back({.name = feed.field,
                      .dtype = type.dtype,
                      .shape = Shape(dims),
                      .limit = feed.limit,
                      .strided = feed.row_axis > 0});
  }
  return fields;
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
  internal_check(!model.feeds.empty() && model.loss.valid(), "a model without ends");
  model.options = options;
  model.graph.name = options.name;
  verify_graph(model.graph);
  return model;
}

}  // namespace thimble
