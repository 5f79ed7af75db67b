#include "import/onnx/lower_onnx.h"

#include <algorithm>
#include <array>
#include <set>

#include "base/error.h"
#include "import/onnx/onnx_lowering.h"

namespace thimble {
namespace {

// Ops by which a tensor's dtype is chosen before they are built, by our names.
constexpr auto kLookedFor = std::to_array<std::pair<std::string_view, std::string_view>>(
    {{"BatchNormalization", "batch_norm"},
     {"GroupNormalization", "group_norm"},
     {"InstanceNormalization", "group_norm"},
     {"LayerNormalization", "layer_norm"},
     {"RMSNormalization", "rms_norm"},
     {"ReduceMean", "mean"},
     {"ReduceSum", "sum"}});

// What a node is to those that look ahead; nothing is built of it.
NetNode sketch_of(const OnnxNode& node) {
  NetNode sketch;
  for (const auto& [theirs, ours] : kLookedFor) {
    if (node.op == theirs) sketch.op = ours;
  }
  for (const std::string& name : node.in) sketch.in.push_back({name, {}});
  sketch.out = node.out;
  return sketch;
}

// A float tensor of the file by itself is a parameter; running statistics are buffers.
Net ends_of(const OnnxModel& onnx) {
  Net net;
  std::set<std::string, std::less<>> statistics, read;
  const auto check_folded = [](bool folded) {
    user_check(!folded,
               "its batch norms are folded into convolutions and the names of weights are lost; "
               "export with {}",
               kHowToExport);
  };
  for (const OnnxEnd& output : onnx.outputs) net.outputs.push_back({output.name, output.name});
  for (const OnnxNode& node : onnx.nodes) {
    net.nodes.push_back(sketch_of(node));
    check_folded(node.norm_folded);
    for (const std::string& name : node.in) read.insert(name);
    if (node.op != "BatchNormalization") continue;
    for (size_t i : {size_t{3}, size_t{4}}) {
      if (i < node.in.size()) statistics.insert(node.in[i]);
    }
  }
  for (const std::string& name : onnx.order) {
    const OnnxTensor& tensor = onnx.tensors.find(name)->second;
    check_folded(name.starts_with("onnx::Conv_"));
    if (tensor.dtype != DType::f32 || !read.contains(name) || tensor.shape.rank() == 0) continue;
    if (onnx.buffers.contains(name)) continue;
    if (statistics.contains(name)) {
      net.buffers.push_back({name, tensor.shape, DType::f32});
    } else {
      net.parameters.push_back({name, tensor.shape, true, {}, 0});
    }
  }
  for (const OnnxEnd& input : onnx.inputs) {
    if (onnx.tensors.contains(input.name)) continue;
    user_check(!input.dims.empty(), "its input '{}' has no axis of rows", input.name);
    NetInput fed = {
        .name = input.name, .dtype = input.dtype, .shape = {{1, true}}, .target = false};
    if (fed.dtype == DType::i64) fed.dtype = DType::i32;
    user_check(fed.dtype != DType::f64, "its input '{}' is double; export it in float", input.name);
    for (size_t i = 1; i < input.dims.size(); ++i) {
      user_check(input.dims[i] > 0 && input.dims[i] < (int64_t{1} << 40),
                 "axis {} of its input '{}' has no fixed size; leave only the rows open", i,
                 input.name);
      fed.shape.push_back({input.dims[i], false});
    }
    shape_for(fed.shape, 1);
    net.inputs.push_back(fed);
  }
  user_check(!net.inputs.empty(), "it reads nothing");
  return net;
}

}  // namespace

Model build_onnx(const OnnxModel& onnx, const ModelOptions& options, const LossParts* parts) {
  try {
    const Net net = ends_of(onnx);
    Model model = OnnxLowering(onnx, net, options).build(parts);
    model.first_values = options.name;
    return model;
  } catch (const UserError& fault) {
    const std::string text = fault.what();
    if (text.starts_with("'" + options.name + "'")) throw;
    user_error("'{}' cannot be trained: {}", options.name, text);
  }
}

LossParts loss_parts_of_onnx(const OnnxModel& onnx, const ModelOptions& options) {
  const Net net = ends_of(onnx);
  const auto [some, others] = two_sizes_of(options);
  OnnxLowering one(onnx, net, some), other(onnx, net, others);
  const std::string loss = one.lower_all();
  other.lower_all();
  return find_loss_parts(one.lowering(), other.lowering(), loss);
}

}  // namespace thimble
