#include "import/onnx/lower_onnx.h"

#include <memory>

#include "base/error.h"
#include "import/onnx/ends.h"
#include "import/onnx/onnx_lowering.h"

namespace thimble {
namespace {

constexpr int kMostBranches = 64;

// A graph at work, with all that it refers to.
struct Built {
  Net net;
  std::vector<OnnxNode> nodes;
  std::unique_ptr<OnnxLowering> lowering;
  std::string loss;  // its name
};

// The branch that is taken stands in place of its node.
std::vector<OnnxNode> with_branch(std::vector<OnnxNode> nodes, const OnnxLowering::Taken& taken) {
  const auto at = nodes.begin() + static_cast<ptrdiff_t>(taken.node);
  const OnnxNode node = *at;
  const auto found = node.attributes.find(taken.holds ? "then_branch" : "else_branch");
  user_check(found != node.attributes.end() && found->second.branch,
             "If: it has no branch for what it finds");
  const OnnxBranch& branch = *found->second.branch;
  user_check(branch.outputs.size() >= node.out.size(), "If: its branch makes {} results, not {}",
             branch.outputs.size(), node.out.size());
  std::vector<OnnxNode> body = branch.nodes;
  for (size_t k = 0; k < node.out.size(); ++k) {
    body.push_back({.op = "Identity", .in = {branch.outputs[k]}, .out = {node.out[k]}});
  }
  const auto place = nodes.erase(at);
  nodes.insert(place, body.begin(), body.end());
  return nodes;
}

std::unique_ptr<Built> lowered(const OnnxModel& onnx, const ModelOptions& options,
                               const OnnxChoices& choices) {
  const std::string end = end_of_loss(onnx, choices).name;
  auto built = std::make_unique<Built>();
  built->nodes = nodes_towards(onnx.nodes, end);
  for (int branches = 0;; ++branches) {
    user_check(branches <= kMostBranches, "it has more than {} branches", kMostBranches);
    built->net = ends_of(onnx, built->nodes, choices);
    built->lowering =
        std::make_unique<OnnxLowering>(onnx, built->nodes, built->net, options, choices);
    try {
      built->loss = built->lowering->lower_all();
      user_check(!built->net.parameters.empty(), "it has no weights to train");
      return built;
    } catch (const OnnxLowering::Taken& taken) {
      built->nodes = nodes_towards(with_branch(built->nodes, taken), end);
    }
  }
}

}  // namespace

Model build_onnx(const OnnxModel& onnx, const ModelOptions& options, const OnnxChoices& choices,
                 const LossParts* parts) {
  try {
    const std::unique_ptr<Built> built = lowered(onnx, options, choices);
    Model model = built->lowering->finish(built->loss, parts);
    model.first_values = options.name;
    return model;
  } catch (const UserError& fault) {
    const std::string text = fault.what();
    if (text.starts_with("'" + options.name + "'")) throw;
    user_error("'{}' cannot be trained: {}", options.name, text);
  }
}

LossParts loss_parts_of_onnx(const OnnxModel& onnx, const ModelOptions& options,
                             const OnnxChoices& choices) {
  const auto [some, others] = two_sizes_of(options);
  const std::unique_ptr<Built> one = lowered(onnx, some, choices);
  const std::unique_ptr<Built> other = lowered(onnx, others, choices);
  return find_loss_parts(one->lowering->lowering(), other->lowering->lowering(), one->loss);
}

}  // namespace thimble
