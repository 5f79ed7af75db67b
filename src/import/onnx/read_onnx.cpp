#include <algorithm>
#include <functional>
#include <optional>

#include "base/error.h"
#include "import/onnx/onnx_model.h"
#include "import/onnx/read_tensor.h"
#include "import/onnx/wire.h"

namespace thimble {
namespace {

constexpr Bytes kLargestFile = Bytes(int64_t{4} << 30);
constexpr size_t kMostNodes = 1 << 18;
constexpr int kDeepest = 8;  // branches in branches

// A note beside a node, StringStringEntryProto, that says that the node was a batch norm, or that a rule put one
// into it. Notes that name classes are of no use: those of the user's own may be called anything.
bool tells_of_norm(std::span<const std::byte> bytes) {
  std::string_view key, value;
  WireField field;
  for (WireReader reader(bytes); reader.next(field);) {
    if (field.number == 1) key = field.text();
    if (field.number == 2) value = field.text();
  }
  if (key == "pkg.onnxscript.rewriter.rule_name") {
    return value.find("FuseBatchNorm") != std::string_view::npos;
  }
  constexpr std::string_view kOp = "[target=torch.ops.aten.";
  const size_t begin = key == "pkg.torch.onnx.fx_node" ? value.find(kOp) : std::string_view::npos;
  if (begin == std::string_view::npos) return false;
  const std::string_view op = value.substr(begin, value.find(']', begin) - begin);
  return op.find("batch_norm") != std::string_view::npos;
}

// "... b_table: BUFFER target='table' ..." in the notes beside a graph.
void note_buffers(std::string_view text, OnnxModel& model) {
  constexpr std::string_view kMark = "BUFFER target='";
  for (size_t at = text.find(kMark); at != std::string::npos; at = text.find(kMark, at)) {
    at += kMark.size();
    const size_t end = text.find('\'', at);
    if (end == std::string::npos) return;
    model.buffers.emplace(text.substr(at, end - at));
  }
}

void read_type(std::span<const std::byte> bytes, OnnxEnd& end) {
  WireField type, tensor, shape, dim;
  end.refused = "no tensor";
  for (WireReader types(bytes); types.next(type);) {
    if (type.number != 1) continue;
    for (WireReader tensors(type.bytes); tensors.next(tensor);) {
      if (tensor.number == 1) {
        const OnnxType known = onnx_type(tensor.value);
        end.dtype = known.dtype;
        end.refused = known.bytes > 0 ? "" : "of " + onnx_type_name(tensor.value);
      }
      if (tensor.number != 2) continue;
      for (WireReader shapes(tensor.bytes); shapes.next(shape);) {
        if (shape.number != 1) continue;
        end.axes.emplace_back();
        for (WireReader dims(shape.bytes); dims.next(dim);) {
          if (dim.number == 1) end.axes.back().extent = std::max<int64_t>(0, dim.whole());
          if (dim.number == 2) end.axes.back().symbol = dim.text();
        }
      }
    }
  }
}

OnnxEnd end_of(std::span<const std::byte> bytes) {
  OnnxEnd end;
  WireField field;
  for (WireReader reader(bytes); reader.next(field);) {
    if (field.number == 1) end.name = field.text();
    if (field.number == 2) read_type(field.bytes, end);
  }
  return end;
}

// Everywhere in the branch, and in those inside of it.
void rename(std::vector<OnnxNode>& nodes, const std::map<std::string, std::string>& names) {
  const auto renamed = [&](std::string& name) {
    if (const auto found = names.find(name); found != names.end()) name = found->second;
  };
  for (OnnxNode& node : nodes) {
    std::ranges::for_each(node.in, renamed);
    std::ranges::for_each(node.out, renamed);
    for (auto& [key, attribute] : node.attributes) {
      if (!attribute.branch) continue;
      OnnxBranch inner = *attribute.branch;
      rename(inner.nodes, names);
      std::ranges::for_each(inner.outputs, renamed);
      attribute.branch = std::make_shared<const OnnxBranch>(std::move(inner));
    }
  }
}

class Reader {
 public:
  Reader(const std::string& path, OnnxModel& model) : beside_(path), model_(model) {}

  void read_graph(std::span<const std::byte> bytes) {
    WireField field;
    for (WireReader reader(bytes); reader.next(field);) {
      switch (field.number) {
        case 1:
          model_.nodes.push_back(node_of(field.bytes, 0));
          break;
        case 5:
          model_.add_tensor(read_onnx_tensor(field.bytes, model_, beside_));
          break;
        case 11:
          model_.inputs.push_back(end_of(field.bytes));
          break;
        case 12:
          model_.outputs.push_back(end_of(field.bytes));
          break;
        case 15:
          user_check(field.bytes.empty(), "it has sparse tensors; store them as dense ones");
          break;
        case 16:
          note_buffers(field.text(), model_);
          break;
      }
    }
    for (const OnnxNode& node : model_.nodes) {
      if (node.op != "BatchNormalization") continue;
      for (size_t i = 3; i < node.in.size(); ++i) model_.buffers.erase(node.in[i]);
    }
  }

 private:
  OnnxAttribute attribute_of(std::span<const std::byte> bytes, std::string& name, int deep) {
    OnnxAttribute attribute;
    WireField field;
    for (WireReader reader(bytes); reader.next(field);) {
      switch (field.number) {
        case 1:
          name = field.text();
          break;
        case 2:
          attribute.real = static_cast<double>(field.real());
          break;
        case 3:
          attribute.whole = field.whole();
          break;
        case 4:
          attribute.text = field.text();
          break;
        case 5:
          attribute.tensors.assign(1, read_onnx_tensor(field.bytes, model_, beside_));
          break;
        case 6:
          attribute.branch = branch_of(field.bytes, deep + 1);
          break;
        case 7:
          append_floats(field, attribute.reals);
          break;
        case 8:
          for (const int64_t number : wholes_in(field)) attribute.wholes.push_back(number);
          break;
        case 9:  // several texts, as one
          attribute.text += (attribute.text.empty() ? "" : ",") + std::string(field.text());
          break;
      }
    }
    return attribute;
  }

  std::shared_ptr<const OnnxBranch> branch_of(std::span<const std::byte> bytes, int deep) {
    user_check(deep <= kDeepest, "it has branches in branches, {} deep", deep);
    OnnxBranch branch;
    std::vector<OnnxTensor> tensors;
    std::map<std::string, std::string> names;
    const std::string prefix = fmt::format("branch{}.", ++branches_);
    WireField field;
    for (WireReader reader(bytes); reader.next(field);) {
      if (field.number == 1) branch.nodes.push_back(node_of(field.bytes, deep));
      if (field.number == 5) tensors.push_back(read_onnx_tensor(field.bytes, model_, beside_));
      if (field.number == 12) branch.outputs.push_back(end_of(field.bytes).name);
    }
    for (const OnnxNode& node : branch.nodes) {
      for (const std::string& out : node.out) {
        if (!out.empty()) names[out] = prefix + out;
      }
    }
    for (OnnxTensor& tensor : tensors) {
      names[tensor.name] = prefix + tensor.name;
      tensor.name = prefix + tensor.name;
      model_.add_tensor(std::move(tensor));
    }
    rename(branch.nodes, names);
    for (std::string& output : branch.outputs) {
      if (const auto found = names.find(output); found != names.end()) output = found->second;
    }
    return std::make_shared<const OnnxBranch>(std::move(branch));
  }

  OnnxNode node_of(std::span<const std::byte> bytes, int deep) {
    user_check(++nodes_ <= kMostNodes, "it has more than {} nodes", kMostNodes);
    OnnxNode node;
    bool of_norm = false;
    std::string domain;
    WireField field;
    for (WireReader reader(bytes); reader.next(field);) {
      std::string name;
      switch (field.number) {
        case 1:
          node.in.emplace_back(field.text());
          break;
        case 2:
          node.out.emplace_back(field.text());
          break;
        case 3:
          node.name = field.text();
          break;
        case 4:
          node.op = field.text();
          break;
        case 5: {
          OnnxAttribute attribute = attribute_of(field.bytes, name, deep);
          node.attributes[name] = std::move(attribute);
          break;
        }
        case 7:
          domain = field.text();
          break;
        case 9:
          of_norm = of_norm || tells_of_norm(field.bytes);
          break;
      }
    }
    if (!domain.empty() && domain != "ai.onnx") node.op = domain + "." + node.op;
    node.norm_folded =
        of_norm && (node.op == "Conv" || node.op == "ConvTranspose" || node.op == "Gemm");
    return node;
  }

  FilesBeside beside_;
  OnnxModel& model_;
  size_t nodes_ = 0;
  int branches_ = 0;
};

void read_opset(std::span<const std::byte> bytes, OnnxModel& model) {
  std::string_view domain;
  int64_t version = 0;
  WireField part;
  for (WireReader reader(bytes); reader.next(part);) {
    if (part.number == 1) domain = part.text();
    if (part.number == 2) version = part.whole();
  }
  if (domain.empty() || domain == "ai.onnx") model.opset = std::max(model.opset, version);
}

}  // namespace

void OnnxModel::add_tensor(OnnxTensor tensor) {
  const std::string name = tensor.name;
  user_check(tensors.emplace(name, std::move(tensor)).second, "'{}' is there twice", name);
  order.push_back(name);
}

int64_t OnnxNode::whole(std::string_view key, int64_t otherwise) const {
  const auto found = attributes.find(key);
  return found == attributes.end() ? otherwise : found->second.whole;
}
double OnnxNode::real(std::string_view key, double otherwise) const {
  const auto found = attributes.find(key);
  return found == attributes.end() ? otherwise : found->second.real;
}
std::string_view OnnxNode::text(std::string_view key, std::string_view otherwise) const {
  const auto found = attributes.find(key);
  return found == attributes.end() ? otherwise : std::string_view(found->second.text);
}
std::vector<int64_t> OnnxNode::wholes(std::string_view key,
                                      const std::vector<int64_t>& otherwise) const {
  const auto found = attributes.find(key);
  return found == attributes.end() ? otherwise : found->second.wholes;
}

OnnxModel read_onnx(const std::string& path) {
  OnnxModel model;
  model.files.push_back(std::make_shared<const MappedFile>(path, "an ONNX file", kLargestFile));
  try {
    WireField field;
    bool found = false;
    Reader graph(path, model);
    for (WireReader reader(model.files[0]->bytes()); reader.next(field);) {
      if (field.number == 2) model.producer = field.text();
      if (field.number == 8) read_opset(field.bytes, model);
      if (field.number != 7 || field.kind != 2) continue;
      user_check(!found, "it has two graphs");
      found = true;
      graph.read_graph(field.bytes);
    }
    user_check(found, "it has no graph");
    user_check(model.opset == 0 || (model.opset >= 7 && model.opset <= 26),
               "it is of opset {}; 7 to 26 can be read", model.opset);
    tidy(model);
  } catch (const UserError& fault) {
    user_error("'{}' is not an ONNX file that can be read: {}", path, fault.what());
  }
  return model;
}

}  // namespace thimble
