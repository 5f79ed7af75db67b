// Has every weight be a tensor of its own, whichever way the exporter wrote it: as an initializer, as
// a Constant node (Paddle), behind an Identity (tensors of equal numbers that were made one), as a
// list of a node's settings (scikit-learn).
#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <set>

#include "import/onnx/onnx_model.h"
#include "import/onnx/slots.h"

namespace thimble {
namespace {

std::string resolved(const std::map<std::string, std::string>& names, std::string name) {
  for (auto at = names.find(name); at != names.end(); at = names.find(name)) name = at->second;
  return name;
}

// Names that nodes go by from here on, in branches too.
void rename_inputs(std::vector<OnnxNode>& nodes, const std::map<std::string, std::string>& names) {
  for (OnnxNode& node : nodes) {
    for (std::string& in : node.in) in = resolved(names, in);
    for (auto& [key, attribute] : node.attributes) {
      if (!attribute.branch) continue;
      OnnxBranch inner = *attribute.branch;
      rename_inputs(inner.nodes, names);
      for (std::string& out : inner.outputs) out = resolved(names, out);
      attribute.branch = std::make_shared<const OnnxBranch>(std::move(inner));
    }
  }
}

// All nodes, those of branches behind the node that has them.
void each_node(const std::vector<OnnxNode>& nodes,
               const std::function<void(const OnnxNode&)>& see) {
  for (const OnnxNode& node : nodes) {
    see(node);
    for (const auto& [key, attribute] : node.attributes) {
      if (attribute.branch) each_node(attribute.branch->nodes, see);
    }
  }
}

void drop_copies_of_tensors(OnnxModel& model) {
  std::map<std::string, std::string> names;
  std::set<std::string_view> ends;
  for (const OnnxEnd& end : model.outputs) ends.insert(end.name);
  std::erase_if(model.nodes, [&](const OnnxNode& node) {
    if (node.op != "Identity" || node.in.size() != 1 || node.out.size() != 1) return false;
    const std::string of = resolved(names, node.in[0]);
    if (ends.contains(node.out[0]) || !model.tensors.contains(of) || node.out[0] == of)
      return false;
    return names.emplace(node.out[0], of).second;
  });
  if (!names.empty()) rename_inputs(model.nodes, names);
}

const OnnxTensor* constant_tensor(const OnnxNode& node) {
  if (node.op != "Constant" || node.out.size() != 1) return nullptr;
  const auto value = node.attributes.find("value");
  const bool there = value != node.attributes.end() && !value->second.tensors.empty();
  return there ? &value->second.tensors[0] : nullptr;
}

// Constants that a layer reads as its weight; then the file keeps weights so, and its other lists of
// real numbers are weights, too.
void hoist_constants(OnnxModel& model) {
  std::map<std::string, const OnnxTensor*, std::less<>> constants;
  each_node(model.nodes, [&](const OnnxNode& node) {
    const OnnxTensor* tensor = constant_tensor(node);
    if (tensor != nullptr && tensor->is_real() && tensor->shape.rank() > 0) {
      constants[node.out[0]] = tensor;
    }
  });
  std::set<std::string> hoisted;
  bool keeps_weights_so = false;
  each_node(model.nodes, [&](const OnnxNode& node) {
    for (size_t i = 0; i < node.in.size(); ++i) {
      const bool weight = constants.contains(node.in[i]) && is_weight_slot(node.op, i);
      if (weight) hoisted.insert(node.in[i]);
      keeps_weights_so = keeps_weights_so || (weight && node.op.starts_with("Conv"));
    }
  });
  for (const auto& [name, tensor] : constants) {
    if (keeps_weights_so && tensor->elements() > 1) hoisted.insert(name);
  }
  for (const std::string& name : hoisted) {
    OnnxTensor tensor = *constants[name];
    tensor.name = name;
    model.add_tensor(std::move(tensor));
  }
  const std::function<void(std::vector<OnnxNode>&)> drop = [&](std::vector<OnnxNode>& nodes) {
    std::erase_if(nodes, [&](const OnnxNode& node) {
      return constant_tensor(node) != nullptr && hoisted.contains(node.out[0]);
    });
    for (OnnxNode& node : nodes) {
      for (auto& [key, attribute] : node.attributes) {
        if (!attribute.branch) continue;
        OnnxBranch inner = *attribute.branch;
        drop(inner.nodes);
        attribute.branch = std::make_shared<const OnnxBranch>(std::move(inner));
      }
    }
  };
  drop(model.nodes);
}

// Running statistics move by themselves, so what else is read under their name is a copy.
void tell_statistics_apart(OnnxModel& model) {
  std::map<std::string, int> readers;
  each_node(model.nodes, [&](const OnnxNode& node) {
    for (const std::string& in : node.in) ++readers[in];
  });
  for (OnnxNode& node : model.nodes) {
    if (node.op != "BatchNormalization" || node.in.size() < 5) continue;
    for (const size_t i : {size_t{3}, size_t{4}}) {
      const auto found = model.tensors.find(node.in[i]);
      if (found == model.tensors.end() || readers[node.in[i]]-- < 2) continue;
      OnnxTensor copy = found->second;
      copy.name = node.out[0] + (i == 3 ? ".running_mean" : ".running_var");
      node.in[i] = copy.name;
      model.add_tensor(std::move(copy));
    }
  }
}

// scikit-learn's linear models: scores = x W' + b, and what becomes of them.
void spell_out_linear_models(OnnxModel& model) {
  std::vector<OnnxNode> nodes;
  for (OnnxNode& node : model.nodes) {
    const bool classifier = node.op == "ai.onnx.ml.LinearClassifier";
    if ((!classifier && node.op != "ai.onnx.ml.LinearRegressor") || node.in.size() != 1 ||
        node.out.size() != (classifier ? 2U : 1U)) {
      nodes.push_back(std::move(node));
      continue;
    }
    const std::string end = node.out.back(), scores = end + ".scores";
    const auto reals = [&](std::string_view key) {
      const auto found = node.attributes.find(key);
      return found == node.attributes.end() ? std::vector<double>() : found->second.reals;
    };
    OnnxTensor weight, bias;
    weight.name = end + ".coefficients", bias.name = end + ".intercepts";
    weight.numbers = reals("coefficients"), bias.numbers = reals("intercepts");
    const int64_t labels = std::max<int64_t>(std::ssize(node.wholes("classlabels_ints", {})),
                                             node.whole("targets", 1));
    const int64_t targets = bias.numbers.empty() ? labels : std::ssize(bias.numbers);
    user_check(targets > 0 && std::ssize(weight.numbers) % targets == 0 && !weight.numbers.empty(),
               "'{}' has {} coefficients for {} targets", node.name, weight.numbers.size(),
               targets);
    weight.shape = Shape({targets, std::ssize(weight.numbers) / targets});
    bias.shape = Shape({targets});
    OnnxNode product = {
        .op = "Gemm", .name = node.name, .in = {node.in[0], weight.name}, .out = {scores}};
    product.attributes["transB"].whole = 1;
    if (!bias.numbers.empty()) {
      product.in.push_back(bias.name);
      model.add_tensor(std::move(bias));
    }
    model.add_tensor(std::move(weight));
    nodes.push_back(std::move(product));
    const std::string_view after = node.text("post_transform", "NONE");
    nodes.push_back({.op = after == "NONE"       ? "Identity"
                           : after == "SOFTMAX"  ? "Softmax"
                           : after == "LOGISTIC" ? "Sigmoid"
                                                 : "post_transform " + std::string(after),
                     .name = node.name,
                     .in = {scores},
                     .out = {end}});
    if (classifier && !node.out[0].empty()) {
      nodes.push_back({.op = "ArgMax", .name = node.name, .in = {scores}, .out = {node.out[0]}});
    }
  }
  model.nodes = std::move(nodes);
}

}  // namespace

void tidy(OnnxModel& model) {
  spell_out_linear_models(model);
  hoist_constants(model);
  drop_copies_of_tensors(model);
  tell_statistics_apart(model);
}

}  // namespace thimble
