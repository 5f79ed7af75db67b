#include "import/onnx/ends.h"

#include <algorithm>
#include <array>
#include <set>

#include "base/error.h"
#include "import/onnx/slots.h"

namespace thimble {
namespace {

// Ops by which a tensor's dtype, or the order of its axes, is chosen before they are built, by our
// names.
constexpr auto kLookedFor = std::to_array<std::pair<std::string_view, std::string_view>>(
    {{"BatchNormalization", "batch_norm"},
     {"Conv", "conv"},
     {"com.microsoft.FusedConv", "conv"},
     {"GroupNormalization", "group_norm"},
     {"InstanceNormalization", "group_norm"},
     {"LayerNormalization", "layer_norm"},
     {"RMSNormalization", "rms_norm"},
     {"ReduceMean", "mean"},
     {"ReduceSum", "sum"},
     {"Identity", "reshape"},
     {"Cast", "reshape"},
     {"Reshape", "reshape"},
     {"Squeeze", "reshape"},
     {"Unsqueeze", "reshape"}});

// A node as those see it that look ahead; nothing is built of it.
NetNode sketch_of(const OnnxNode& node) {
  NetNode sketch;
  for (const auto& [theirs, ours] : kLookedFor) {
    if (node.op == theirs) sketch.op = ours;
  }
  if (node.op == "Gather" && node.whole("axis", 0) == 0) sketch.op = "embedding";
  for (const std::string& name : node.in) sketch.in.push_back({name, {}});
  sketch.out = node.out;
  return sketch;
}

// All that a node reads, in its branches too.
void add_reads(const OnnxNode& node, std::set<std::string, std::less<>>& names) {
  names.insert(node.in.begin(), node.in.end());
  for (const auto& [key, attribute] : node.attributes) {
    if (!attribute.branch) continue;
    for (const OnnxNode& inner : attribute.branch->nodes) add_reads(inner, names);
    names.insert(attribute.branch->outputs.begin(), attribute.branch->outputs.end());
  }
}

const OnnxEnd* find_input(const OnnxModel& onnx, std::string_view name) {
  const auto found = std::ranges::find(onnx.inputs, name, &OnnxEnd::name);
  return found == onnx.inputs.end() || onnx.tensors.contains(name) ? nullptr : &*found;
}

// UserError for a name that is no input.
void check_names(const OnnxModel& onnx, std::string_view flag, const auto& given) {
  for (const auto& [name, value] : given) {
    if (find_input(onnx, name) != nullptr) continue;
    std::string all;
    for (const OnnxEnd& input : onnx.inputs) {
      if (!onnx.tensors.contains(input.name)) all += (all.empty() ? "" : ", ") + input.name;
    }
    user_error("{} names '{}', and its inputs are {}", flag, name, all);
  }
}

// The axis that goes by the name that other inputs call their rows by, where the first is no axis
// of rows; else the first.
size_t axis_of_rows(const OnnxModel& onnx, const OnnxEnd& input) {
  if (input.axes.empty() || input.axes[0].extent == 0) return 0;
  for (const OnnxEnd& other : onnx.inputs) {
    if (onnx.tensors.contains(other.name) || other.axes.empty()) continue;
    const OnnxAxis& rows = other.axes[0];
    if (rows.extent != 0 || rows.symbol.empty()) continue;
    for (size_t axis = 1; axis < input.axes.size(); ++axis) {
      if (input.axes[axis].symbol == rows.symbol) return axis;
    }
  }
  return 0;
}

std::string example_of(const OnnxEnd& input, size_t rows) {
  std::string text = input.name + "=";
  for (size_t axis = 0; axis < input.axes.size(); ++axis) {
    const int64_t extent = input.axes[axis].extent;
    text += axis == rows ? "rows" : extent > 0 ? fmt::format("{}", extent) : "?";
    if (axis + 1 < input.axes.size()) text += ",";
  }
  return text;
}

}  // namespace

const OnnxEnd& end_of_loss(const OnnxModel& onnx, const OnnxChoices& choices) {
  user_check(!onnx.outputs.empty(), "it makes nothing");
  if (!choices.output.empty()) {
    for (const OnnxEnd& output : onnx.outputs) {
      if (output.name == choices.output) return output;
    }
    std::string all;
    for (const OnnxEnd& output : onnx.outputs) all += (all.empty() ? "" : ", ") + output.name;
    user_error("it has no output '{}'; its outputs are {}", choices.output, all);
  }
  const auto comes_of = [&](const OnnxEnd& output, std::string_view op) {
    return std::ranges::any_of(onnx.nodes, [&](const OnnxNode& node) {
      return node.op == op && std::ranges::find(node.out, output.name) != node.out.end();
    });
  };
  for (const OnnxEnd& output : onnx.outputs) {
    const bool real = output.refused.empty() && is_floating(output.dtype);
    if (real || comes_of(output, "ai.onnx.ml.ZipMap")) return output;
  }
  return onnx.outputs.front();
}

std::vector<OnnxNode> nodes_towards(const std::vector<OnnxNode>& nodes, const std::string& value) {
  std::set<std::string, std::less<>> wanted = {value};
  std::vector<OnnxNode> kept;
  for (size_t n = nodes.size(); n-- > 0;) {
    const OnnxNode& node = nodes[n];
    if (std::ranges::none_of(node.out, [&](const auto& out) { return wanted.contains(out); })) {
      continue;
    }
    add_reads(node, wanted);
    kept.push_back(node);
  }
  std::ranges::reverse(kept);
  return kept;
}

int64_t usual_rows(const OnnxModel& onnx, const OnnxChoices& choices) {
  const auto shapes = shapes_in(choices);
  const auto fixed = fixed_in(choices);
  int64_t rows = 0;
  for (const OnnxEnd& input : onnx.inputs) {
    if (onnx.tensors.contains(input.name) || fixed.contains(input.name)) continue;
    const auto given = shapes.find(input.name);
    const size_t axis = axis_of_rows(onnx, input);
    int64_t own = axis < input.axes.size() ? input.axes[axis].extent : 0;
    if (given != shapes.end() &&
        std::ranges::find(given->second, kRowsAxis) == given->second.end()) {
      user_check(rows == 0 || axis >= given->second.size() || given->second[axis] == rows,
                 "--shape gives '{}' {} rows, and another input {}", input.name,
                 given->second[axis], rows);
      if (axis < given->second.size()) own = given->second[axis];
      rows = own;
    }
    if (rows == 0) rows = own;
  }
  return rows;
}

Extents extents_of(const OnnxModel& onnx, const OnnxEnd& input, const OnnxChoices& choices) {
  const auto shapes = shapes_in(choices);
  const auto given = shapes.find(input.name);
  size_t rows = axis_of_rows(onnx, input);
  const std::vector<int64_t>* said = given == shapes.end() ? nullptr : &given->second;
  if (said != nullptr) {
    user_check(input.axes.empty() || said->size() == input.axes.size(),
               "--shape gives its input '{}' {} axes, and the file {}", input.name, said->size(),
               input.axes.size());
    const auto own = std::ranges::find(*said, kRowsAxis);
    if (own != said->end()) rows = static_cast<size_t>(own - said->begin());
  }
  const size_t count = said != nullptr ? said->size() : input.axes.size();
  user_check(count > 0,
             "its input '{}' has no axis of rows; give its number by --fixed {}=NUMBER, or its "
             "axes by --shape",
             input.name, input.name);
  Extents extents;
  for (size_t axis = 0; axis < count; ++axis) {
    if (axis == rows) {
      extents.push_back({1, true});
      continue;
    }
    const int64_t of_file = axis < input.axes.size() ? input.axes[axis].extent : 0;
    const int64_t extent = said != nullptr ? (*said)[axis] : of_file;
    user_check(extent > 0, "axis {} of its input '{}' has no fixed size; say --shape {}", axis,
               input.name, example_of(input, rows));
    user_check(of_file == 0 || of_file == extent,
               "--shape gives axis {} of its input '{}' an extent of {}, and the file one of {}",
               axis, input.name, extent, of_file);
    user_check(extent < (int64_t{1} << 40), "axis {} of its input '{}' is beyond any memory", axis,
               input.name);
    extents.push_back({extent, false});
  }
  shape_for(extents, 1);
  return extents;
}

Extents extents_of_fixed(const OnnxModel& onnx, const OnnxEnd& input, const OnnxChoices& choices) {
  if (shapes_in(choices).contains(input.name)) return extents_of(onnx, input, choices);
  const size_t rows = axis_of_rows(onnx, input);
  Extents extents;
  for (size_t axis = 0; axis < input.axes.size(); ++axis) {
    const int64_t extent = input.axes[axis].extent;
    if (extent == 0 && axis != rows) return extents_of(onnx, input, choices);  // says what to say
    extents.push_back({extent == 0 ? 1 : extent, extent == 0});
  }
  return extents;
}

Net ends_of(const OnnxModel& onnx, const std::vector<OnnxNode>& nodes, const OnnxChoices& choices) {
  Net net;
  std::set<std::string, std::less<>> statistics, read, weights;
  const auto check_folded = [&](bool folded) {
    user_check(!folded || choices.norms != "train",
               "its batch norms are folded into convolutions and the names of weights are lost; "
               "choose --norms frozen, or export with {}",
               kHowToExport);
  };
  net.outputs.push_back({end_of_loss(onnx, choices).name, end_of_loss(onnx, choices).name});
  for (const OnnxNode& node : nodes) {
    net.nodes.push_back(sketch_of(node));
    check_folded(node.norm_folded);
    add_reads(node, read);
    for (size_t i = 0; i < node.in.size(); ++i) {
      if (!is_setting_slot(node.op, i)) weights.insert(node.in[i]);
    }
    if (node.op != "BatchNormalization") continue;
    for (size_t i : {size_t{3}, size_t{4}}) {
      if (i < node.in.size()) statistics.insert(node.in[i]);
    }
  }
  for (const std::string& name : onnx.order) {
    const OnnxTensor& tensor = onnx.tensors.find(name)->second;
    if (!weights.contains(name)) continue;
    check_folded(name.starts_with("onnx::Conv_"));
    if (!tensor.is_real() || tensor.shape.rank() == 0 || onnx.buffers.contains(name)) continue;
    if (statistics.contains(name)) {
      net.buffers.push_back({name, tensor.shape, DType::f32});
    } else {
      net.parameters.push_back({name, tensor.shape, true, {}, 0});
    }
  }
  const auto fixed = fixed_in(choices);
  check_names(onnx, "--shape", shapes_in(choices));
  check_names(onnx, "--fixed", fixed);
  for (const OnnxEnd& input : onnx.inputs) {
    const bool fed = !onnx.tensors.contains(input.name) && !fixed.contains(input.name);
    if (!fed || !read.contains(input.name)) continue;
    user_check(input.refused.empty(), "its input '{}' is {}, which cannot be read", input.name,
               input.refused);
    user_check(input.dtype != DType::f64, "its input '{}' is double; export it in float",
               input.name);
    NetInput entrance = {.name = input.name,
                         .dtype = input.dtype,
                         .shape = extents_of(onnx, input, choices),
                         .target = false};
    if (entrance.dtype == DType::i64) entrance.dtype = DType::i32;
    if (is_floating(entrance.dtype)) entrance.dtype = DType::f32;
    net.inputs.push_back(entrance);
  }
  user_check(!net.inputs.empty(), "it reads nothing");
  return net;
}

}  // namespace thimble
