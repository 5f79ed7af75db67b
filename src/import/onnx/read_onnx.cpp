#include <cstring>
#include <optional>

#include "base/error.h"
#include "base/io/file.h"
#include "import/onnx/onnx_model.h"
#include "import/onnx/wire.h"

namespace thimble {
namespace {

constexpr Bytes kLargestFile = Bytes(int64_t{4} << 30);
constexpr size_t kMostNodes = 1 << 18;
constexpr int64_t kMostSettings = 1 << 16;  // numbers of a list that a graph is told by

// TensorProto.DataType.
std::optional<DType> dtype_of(uint64_t code) {
  switch (code) {
    case 1:
      return DType::f32;
    case 2:
    case 9:
      return DType::u8;
    case 6:
      return DType::i32;
    case 7:
      return DType::i64;
    case 11:
      return DType::f64;
    default:
      return std::nullopt;
  }
}

std::vector<int64_t> packed(const WireField& field) {
  if (field.kind == 0) return {field.whole()};
  std::vector<int64_t> numbers;
  for (WireReader reader(field.bytes); !reader.done();) {
    numbers.push_back(static_cast<int64_t>(reader.varint()));
  }
  return numbers;
}

template <class Number>
void append_fixed(const WireField& field, std::vector<double>& to) {
  if (field.kind != 2) {
    Number number{};
    std::memcpy(&number, &field.value, sizeof(Number));
    to.push_back(static_cast<double>(number));
    return;
  }
  for (size_t at = 0; at + sizeof(Number) <= field.bytes.size(); at += sizeof(Number)) {
    Number number{};
    std::memcpy(&number, field.bytes.data() + at, sizeof(Number));
    to.push_back(static_cast<double>(number));
  }
}

OnnxTensor tensor_of(std::span<const std::byte> bytes) {
  OnnxTensor tensor;
  std::vector<int64_t> dims;
  uint64_t type = 0;
  bool elsewhere = false;
  WireField field;
  for (WireReader reader(bytes); reader.next(field);) {
    switch (field.number) {
      case 1:
        for (const int64_t extent : packed(field)) dims.push_back(extent);
        user_check(dims.size() <= 64, "a tensor has more axes than anyone wants");
        break;
      case 2:
        type = field.value;
        break;
      case 4:
        append_fixed<float>(field, tensor.numbers);
        break;
      case 5:
      case 7:
        for (const int64_t number : packed(field)) {
          tensor.numbers.push_back(static_cast<double>(number));
        }
        break;
      case 8:
        tensor.name = field.text();
        break;
      case 9:
        tensor.raw = field.bytes;
        break;
      case 10:
        append_fixed<double>(field, tensor.numbers);
        break;
      case 14:
        elsewhere = field.value == 1;
        break;
    }
  }
  user_check(!elsewhere, "'{}' lies in another file; export with {}", tensor.name, kHowToExport);
  const auto dtype = dtype_of(type);
  user_check(dtype.has_value(),
             "'{}' is of ONNX's type {}; float, double, int32, int64, uint8 and "
             "bool can be read",
             tensor.name, type);
  tensor.dtype = *dtype;
  tensor.shape = Shape(std::span<const int64_t>(dims));
  const bool whole = tensor.raw.empty()
                         ? std::ssize(tensor.numbers) == tensor.elements()
                         : std::ssize(tensor.raw) == tensor.elements() * size_of(tensor.dtype);
  user_check(whole, "'{}' has not as many numbers as its shape {}", tensor.name,
             to_string(tensor.shape));
  return tensor;
}

OnnxAttribute attribute_of(std::span<const std::byte> bytes, std::string& name) {
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
        attribute.tensors.assign(1, tensor_of(field.bytes));
        break;
      case 7:
        append_fixed<float>(field, attribute.reals);
        break;
      case 8:
        for (const int64_t number : packed(field)) attribute.wholes.push_back(number);
        break;
    }
  }
  return attribute;
}

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

OnnxNode node_of(std::span<const std::byte> bytes) {
  OnnxNode node;
  bool of_norm = false;
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
        OnnxAttribute attribute = attribute_of(field.bytes, name);
        node.attributes[name] = std::move(attribute);
        break;
      }
      case 7:
        user_check(field.text().empty() || field.text() == "ai.onnx",
                   "'{}' is an op of '{}', and only ONNX's own are known", node.op, field.text());
        break;
      case 9:
        of_norm = of_norm || tells_of_norm(field.bytes);
        break;
    }
  }
  node.norm_folded =
      of_norm && (node.op == "Conv" || node.op == "ConvTranspose" || node.op == "Gemm");
  return node;
}

OnnxEnd end_of(std::span<const std::byte> bytes) {
  OnnxEnd end;
  WireField field, type, tensor, shape, dim;
  for (WireReader reader(bytes); reader.next(field);) {
    if (field.number == 1) end.name = field.text();
    if (field.number != 2) continue;
    for (WireReader types(field.bytes); types.next(type);) {
      if (type.number != 1) continue;
      for (WireReader tensors(type.bytes); tensors.next(tensor);) {
        if (tensor.number == 1) {
          const auto dtype = dtype_of(tensor.value);
          user_check(dtype.has_value(), "'{}' is of ONNX's type {}", end.name, tensor.value);
          end.dtype = *dtype;
        }
        if (tensor.number != 2) continue;
        for (WireReader shapes(tensor.bytes); shapes.next(shape);) {
          end.dims.push_back(0);
          for (WireReader dims(shape.bytes); dims.next(dim);) {
            if (dim.number == 1) end.dims.back() = dim.whole();
          }
        }
      }
    }
  }
  return end;
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

void read_graph(std::span<const std::byte> bytes, OnnxModel& model) {
  WireField field;
  for (WireReader reader(bytes); reader.next(field);) {
    switch (field.number) {
      case 1:
        user_check(model.nodes.size() < kMostNodes, "it has more than {} nodes", kMostNodes);
        model.nodes.push_back(node_of(field.bytes));
        break;
      case 5: {
        OnnxTensor tensor = tensor_of(field.bytes);
        const std::string name = tensor.name;
        user_check(model.tensors.emplace(name, std::move(tensor)).second, "'{}' is there twice",
                   name);
        model.order.push_back(name);
        break;
      }
      case 11:
        model.inputs.push_back(end_of(field.bytes));
        break;
      case 12:
        model.outputs.push_back(end_of(field.bytes));
        break;
      case 16:
        note_buffers(field.text(), model);
        break;
    }
  }
  for (const OnnxNode& node : model.nodes) {
    if (node.op != "BatchNormalization") continue;
    for (size_t i = 3; i < node.in.size(); ++i) model.buffers.erase(node.in[i]);
  }
}

}  // namespace

double OnnxTensor::at(int64_t i) const {
  if (raw.empty()) return numbers[static_cast<size_t>(i)];
  return with_any_type(dtype, [&]<class T>(TypeTag<T>) {
    T number{};
    std::memcpy(&number, raw.data() + i * static_cast<int64_t>(sizeof(T)), sizeof(T));
    return static_cast<double>(number);
  });
}

std::vector<int64_t> OnnxTensor::wholes() const {
  user_check(elements() <= kMostSettings, "'{}' is a list of {} numbers", name, elements());
  std::vector<int64_t> result;
  for (int64_t i = 0; i < elements(); ++i) {
    const double number = at(i);
    const bool sane = number >= -9.2e18 && number <= 9.2e18;
    result.push_back(sane ? static_cast<int64_t>(number) : number > 0 ? INT64_MAX : INT64_MIN);
  }
  return result;
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
std::vector<int64_t> OnnxNode::wholes(std::string_view key, std::vector<int64_t> otherwise) const {
  const auto found = attributes.find(key);
  return found == attributes.end() ? otherwise : found->second.wholes;
}

OnnxModel read_onnx(const std::string& path) {
  OnnxModel model;
  model.file = read_text(path, "an ONNX file", kLargestFile);
  try {
    WireField field, part;
    bool found = false;
    const std::span<const std::byte> all = std::as_bytes(std::span(model.file));
    for (WireReader reader(all); reader.next(field);) {
      if (field.number == 2) model.producer = field.text();
      if (field.number == 8) {
        for (WireReader opsets(field.bytes); opsets.next(part);) {
          if (part.number == 2) model.opset = std::max(model.opset, part.whole());
        }
      }
      if (field.number != 7 || field.kind != 2) continue;
      user_check(!found, "it has two graphs");
      found = true;
      read_graph(field.bytes, model);
    }
    user_check(found, "it has no graph");
  } catch (const UserError& fault) {
    user_error("'{}' is not an ONNX file that can be read: {}", path, fault.what());
  }
  return model;
}

}  // namespace thimble
