#include "model/model.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <iterator>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/field.h"
#include "base/io/nearest_path.h"
#include "base/nearest_name.h"

namespace thimble {
namespace {

constexpr std::array<std::string_view, 4> kNorms = {"batch", "group", "carried", "synced"};

bool normalizes(const Graph& graph) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(),
                     [](const Node& node) { return node.op->normalizes; });
}

}  // namespace

std::string_view name_of(Norm norm) { return kNorms[static_cast<size_t>(norm)]; }

ModelOptions options_for(ModelOptions options, const StepShape& shape) {
  options.batch = shape.rows;
  if (shape.length > 0) options.length = shape.length;
  options.training = shape.purpose == Purpose::training;
  options.generating = shape.purpose == Purpose::generation;
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
                      .ignored = feed.must_count ? std::nullopt : feed.ignored,
                      .strided = feed.row_axis > 0});
  }
  return fields;
}

namespace {

// Numbers of a pattern that a name leaves out: a depth, a width.
constexpr std::array<std::pair<char, const char*>, 3> kUsualNumbers = {
    {{'N', "50"}, {'D', "28"}, {'K', "2"}}};

// UserError where the name of a model is the path of something that is none.
void refuse_path(const std::string& name) {
  std::error_code ignored;
  const std::filesystem::path path(name);
  const std::string kind = path.extension().string();
  const auto is_one_of = [&](std::initializer_list<const char*> kinds) {
    return std::ranges::find(kinds, kind) != kinds.end();
  };
  user_check(!is_one_of({".pt", ".pth", ".py", ".bin", ".safetensors", ".h5", ".keras", ".ckpt"}),
             "'{}' is no model: write the net of a PyTorch program as NET.json with "
             "thimble.torch.export, or as NET.onnx",
             name);
  user_check(!is_one_of({".yaml", ".yml", ".ini", ".cfg", ".conf"}),
             "'{}' is no model: a recipe is TOML, {}", name,
             std::filesystem::path(path).replace_extension(".toml").string());
  if (std::filesystem::is_directory(path, ignored)) {
    user_error(
        "'{}' is a folder without config.json: a model is a folder of transformers, a name of "
        "`thimble list models`, a recipe (.toml), NET.json or NET.onnx",
        name);
  }
  const std::string meant = nearest_path(name);
  const bool is_path = name.find_first_of("/.") != std::string::npos;
  user_check(!is_path || meant.empty(), "there is no file '{}'; the nearest is '{}'", name, meant);
}

// Names that a pattern stands for, with the numbers of `typed`: "resnet-N" is resnet-50 beside
// "restnet50", and "wrn-D-K" is wrn-28-2 beside "wrn".
std::vector<std::string> names_like(std::string_view pattern, std::string_view typed) {
  std::vector<std::string> names;
  for (size_t at = 0; at < pattern.size();) {
    const size_t comma = std::min(pattern.find(", ", at), pattern.size());
    const std::string_view one = pattern.substr(at, comma - at);
    at = comma + 2;
    if (one.find_first_of("[.") != std::string_view::npos) continue;  // a list, or a file
    if (one.find(':') != std::string_view::npos) {
      names.emplace_back(one);  // a folder
      continue;
    }
    std::string name;
    size_t from = 0;
    for (const char c : one) {
      const auto number = std::ranges::find(kUsualNumbers, c, &std::pair<char, const char*>::first);
      if (number == kUsualNumbers.end()) {
        name += c;
        continue;
      }
      const size_t digits = std::min(typed.find_first_of("0123456789", from), typed.size());
      from = std::min(typed.find_first_not_of("0123456789", digits), typed.size());
      name += digits < from ? std::string(typed.substr(digits, from - digits)) : number->second;
    }
    names.push_back(std::move(name));
  }
  return names;
}

}  // namespace

const ModelFamily& find_model_family(std::string_view name) {
  std::vector<std::string_view> patterns;
  std::vector<std::string> names;
  for (const ModelFamily* family : all_model_families()) {
    if (family->matches(name)) return *family;
    patterns.push_back(family->pattern);
    std::ranges::move(names_like(family->pattern, name), std::back_inserter(names));
  }
  refuse_path(std::string(name));
  // Another program's name of a family: the numbers behind it are those of ours.
  const std::string ours = our_name(name.substr(0, name.find_first_of("-_0123456789")),
                                    std::vector<std::string>(patterns.begin(), patterns.end()));
  const std::string likely =
      ours.empty() ? likely_name(name, names) : names_like(ours, name).front();
  // Numbers that are none of the family's are what is wrong: it says so.
  for (const ModelFamily* family : all_model_families()) family->matches(likely);
  user_error("there is no model '{}'; known: {} (see `thimble list models`){}", name,
             fmt::join(patterns, ", "),
             likely.empty() ? "" : fmt::format("; the nearest is '{}'", likely));
}

void list_layers(int64_t& layers, Fields& fields, int64_t most, std::string_view help) {
  fields.whole("layers", layers, {.least = 1, .most = most},
               {.help = std::string(help), .affects = affects::all});
}

void list_hidden(int64_t& hidden, Fields& fields, std::string_view help, int64_t least) {
  fields.whole("hidden", hidden, {.least = least, .most = kMostWidth},
               {.help = std::string(help), .affects = affects::all});
}

void list_dropout(ModelOptions& options, Fields& fields) {
  fields.real("dropout", options.dropout, {.least = 0, .most = 1, .below = true},
              {.help = "share of elements dropped", .placeholder = "P", .affects = affects::all});
}

void list_norm(ModelOptions& options, Fields& fields) {
  fields.choice("norm", "normalisation", kNorms.size(), options.norm,
                {.help = "batch, group, carried or synced normalisation",
                 .more = "`batch`, `group` or `carried`, see [below](#tiers-and-microbatches); "
                         "`synced`: statistics of all ranks' rows, see [ranks](cluster.md)",
                 .affects = affects::all});
  const bool group = options.norm == Norm::group;
  fields.real(
      "norm-momentum", options.norm_momentum, {.least = 0, .most = 1, .above = true},
      {.help = "how far running statistics move with a batch",
       .affects = affects::graph | affects::numerics,
       .unused_reason = group ? "with --norm group, which keeps no running statistics" : ""});
  fields.real("norm-epsilon", options.norm_epsilon, {.least = 0, .most = 1, .above = true},
              {.help = "added to variances", .affects = affects::graph | affects::numerics});
}

void list_own_fields(ModelOptions& options, Fields& fields) {
  if (!options.build) {
    find_model_family(options.name).fields(options, fields);
    return;
  }
  list_dropout(options, fields);
  list_norm(options, fields);
}

namespace {

// A folder of transformers has the name of the family that reads such folders, unless a family knows
// its path as a name.
std::string with_prefix_of_folder(const std::string& name) {
  constexpr std::string_view kOfFolder = ":FOLDER";
  std::error_code unknown;
  if (!std::filesystem::exists(name + "/config.json", unknown)) return name;
  for (const ModelFamily* family : all_model_families()) {
    if (family->matches(name)) return name;
  }
  const size_t end = std::max<size_t>(1, name.find_last_not_of('/') + 1);
  for (const ModelFamily* family : all_model_families()) {
    std::string_view prefix = family->pattern;
    if (!prefix.ends_with(kOfFolder)) continue;
    prefix.remove_suffix(kOfFolder.size() - 1);
    return std::string(prefix) + name.substr(0, end);
  }
  return name;
}

}  // namespace

void split_name(ModelOptions& options) {
  options.name = with_prefix_of_folder(options.name);
  const size_t colon = options.name.rfind(':');
  if (colon == std::string::npos || options.name.find('=', colon) == std::string::npos) return;
  const std::string whole = options.name;
  std::string_view rest = std::string_view(whole).substr(colon + 1);
  options.name = with_prefix_of_folder(whole.substr(0, colon));
  Fields listed;
  list_own_fields(options, listed);
  const std::vector<Field> fields = std::move(listed).take();
  std::vector<std::string> names;
  for (const Field& field : fields) names.push_back(field.name());
  while (!rest.empty()) {
    const std::string_view part = rest.substr(0, rest.find(','));
    const size_t equals = part.find('=');
    user_check(equals != std::string_view::npos,
               "'{}': settings of a model are NAME=VALUE, not '{}'", whole, part);
    const Field* const field = find_field(fields, part.substr(0, equals));
    user_check(field != nullptr, "'{}': {} has no '{}'; it has {}", whole, options.name,
               part.substr(0, equals), fmt::join(names, ", "));
    field->set(std::string(part.substr(equals + 1)));
    rest.remove_prefix(std::min(rest.size(), part.size() + 1));
  }
}

void complete_model(ModelOptions& options, bool on_gpu) {
  if (options.build) return;
  split_name(options);
  const ModelFamily& family = find_model_family(options.name);
  if (options.batch == 0) options.batch = family.batch;
  if (options.image.rank() == 0) options.image = family.image;
  if (options.classes == 0) options.classes = family.classes;
  if (family.complete != nullptr) family.complete(options, on_gpu);
}

Model build_model(ModelOptions options) {
  complete_model(options);
  user_check(options.batch >= 1, "a batch needs at least one row, not {}", options.batch);
  user_check(options.classes >= 2, "a classifier needs at least two classes, not {}",
             options.classes);
  Model model =
      options.build ? options.build(options) : find_model_family(options.name).build(options);
  user_check(options.norm == Norm::batch || normalizes(model.graph),
             "{} has no layers that normalise; leave --norm out", options.name);
  internal_check(!model.feeds.empty() && (model.loss.valid() || options.generating),
                 "a model without ends");
  model.options = options;
  model.graph.name = options.name;
  verify_graph(model.graph);
  return model;
}

PartsOfBatches parts_of_batches(const ModelOptions& options) {
  if (options.build) return {};
  const ModelFamily& family = find_model_family(options.name);
  return family.parts == nullptr ? PartsOfBatches{} : family.parts(options);
}

}  // namespace thimble
