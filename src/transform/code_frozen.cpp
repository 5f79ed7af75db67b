#include "transform/code_frozen.h"

#include <algorithm>

#include "base/error.h"
#include "graph/builder.h"
#include "graph/order.h"
#include "transform/linear_layers.h"

namespace thimble {
namespace {

constexpr bool has_sixteen_bits(CodedFormat format) {
  return format == CodedFormat::f16 || format == CodedFormat::bf16;
}

bool multiplies(const Node& node, size_t input) {
  return input == 1 && !node.added_into(0).valid() && product_of(node);
}

bool is_table(const Node& node, size_t input) { return ((node.op->tables >> input) & 1u) != 0; }

// How a frozen matrix is read.
struct Reads {
  bool any = false;
  bool as_table = false;  // by embed, or by a head that makes logits
  bool other = false;
};

class Coder {
 public:
  Coder(Graph& graph, CodedFormat format, ValueId logits)
      : graph_(graph), b_(graph), format_(format), logits_(logits), readers_(readers_of(graph)) {}

  // The format that the matrix is to be kept in. None: it stays as it is.
  std::optional<CodedFormat> format_of(ValueId value) const {
    const Value& v = graph_[value];
    const bool matrix = v.role == Role::frozen && !v.producer.valid() && v.type.shape.rank() == 2 &&
                        is_floating(v.type.dtype) && v.type.elements() > 0;
    if (!matrix) return std::nullopt;
    const Reads reads = reads_of(value);
    if (!reads.any || reads.other) return std::nullopt;
    const bool table = reads.as_table;
    const CodedFormat format = table && !has_sixteen_bits(format_) ? CodedFormat::bf16 : format_;
    // Nothing is gained, or a table would be rounded to another 16-bit type than what reads it.
    const bool kept = has_sixteen_bits(format) && size_of(v.type.dtype) == 2 &&
                      (table || dtype_of(format) == v.type.dtype);
    return kept ? std::nullopt : std::optional(format);
  }

  void code(ValueId value, CodedFormat format) {
    const Shape shape = graph_[value].type.shape;
    const DType read_as = graph_[value].type.dtype;
    const CodedMatrix matrix = {format, shape[0], shape[1]};
    const std::string name = graph_[value].name;
    const std::vector<TensorType> types = matrix.types();
    const std::vector<std::string_view> suffixes = matrix.suffixes();
    graph_[value].type = types[0];
    std::vector<ValueId> values = {value};
    for (size_t i = 1; i < types.size(); ++i) {
      values.push_back(b_.frozen(name + std::string(suffixes[i]), types[i]));
    }
    for (const NodeId reader : readers_[value.at()]) {
      if (is_table(graph_[reader], 0)) {
        look_up(reader, read_as);
      } else if (multiplies(graph_[reader], 1)) {
        multiply(reader, matrix, values);
      }
    }
  }

  // Nodes that were made go in front of those that they stand for.
  void finish(size_t first) { insert_nodes(graph_, first, slots_); }

 private:
  static DType dtype_of(CodedFormat format) {
    return format == CodedFormat::f16 ? DType::f16 : DType::bf16;
  }

  Reads reads_of(ValueId value) const {
    Reads reads;
    for (const NodeId reader : readers_[value.at()]) {
      const Node& node = graph_[reader];
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        if (node.inputs[i] != value) continue;
        const bool table = is_table(node, i);
        reads.any = true;
        reads.as_table |= table || (multiplies(node, i) &&
                                    makes_logits(graph_, readers_, node.outputs[0], logits_));
        reads.other |= !table && !multiplies(node, i);
      }
    }
    return reads;
  }

  // A new node's result, to be read by `reader`.
  ValueId before(NodeId reader, std::string_view op, std::vector<ValueId> inputs,
                 Attrs attrs = {}) {
    const std::string& name = graph_[reader].name;
    const size_t dot = name.rfind('.');
    const Builder::Scope scope(b_, dot == std::string::npos ? "coded" : name.substr(0, dot));
    slots_.push_back(reader.at());
    return b_.op(op, std::move(inputs), std::move(attrs));
  }

  void become(NodeId id, std::string_view op, std::vector<ValueId> inputs, Attrs attrs) {
    Node& node = graph_[id];
    node.op = find_op(op);
    node.inputs = std::move(inputs);
    node.attrs = std::move(attrs);
  }

  // Rows of a table in 16 bits, and these in what they are read as.
  void look_up(NodeId id, DType read_as) {
    Attrs attrs = graph_[id].attrs;
    const double scale = attrs.real("scale", 1);
    attrs.set("scale", 1.0);
    ValueId rows = before(id, "embed", graph_[id].inputs, attrs);
    const Attrs cast = {{"dtype", std::string(name_of(read_as))}};
    if (scale == 1) return become(id, "cast", {rows}, cast);
    rows = before(id, "cast", {rows}, cast);
    become(id, "scale", {rows}, {{"factor", scale}});
  }

  void multiply(NodeId id, const CodedMatrix& matrix, const std::vector<ValueId>& values) {
    const std::vector<ValueId> read = graph_[id].inputs;
    const ProductForm product = *product_of(graph_[id]);
    Attrs attrs = attrs_of(matrix);
    attrs.set("transpose", int64_t{product.row_per_output});
    std::vector<ValueId> inputs = {read[0]};
    inputs.insert(inputs.end(), values.begin(), values.end());
    const auto added = [&](int input) { return read[static_cast<size_t>(input)]; };
    const bool biased = product.bias >= 0, adds = product.addend >= 0;
    if (!biased && !adds) return become(id, "coded_matmul", std::move(inputs), std::move(attrs));
    ValueId y = before(id, "coded_matmul", std::move(inputs), std::move(attrs));
    if (!biased) return become(id, "add", {y, added(product.addend)}, {});
    if (adds) y = before(id, "add", {y, added(product.addend)});
    become(id, "bias_act", {y, added(product.bias)}, {});
  }

  Graph& graph_;
  Builder b_;
  const CodedFormat format_;
  const ValueId logits_;
  const std::vector<std::vector<NodeId>> readers_;
  std::vector<size_t> slots_;
};

}  // namespace

void code_frozen(Graph& graph, CodedFormat format, ValueId logits) {
  const size_t values = graph.values.size(), nodes = graph.nodes.size();
  Coder coder(graph, format, logits);
  for (size_t v = 0; v < values; ++v) {
    const ValueId value = make_id<ValueId>(v);
    const auto chosen = coder.format_of(value);
    if (chosen) coder.code(value, *chosen);
  }
  coder.finish(nodes);
}

void check_codes_something(const Graph& graph, CodedFormat format) {
  const bool any = std::ranges::any_of(
      graph.values, [](const Value& value) { return value.role == Role::frozen; });
  user_check(
      any,
      "--frozen {} is for weights that are not trained, and all of {} are; choose --lora, or "
      "leave --frozen out",
      name_of(format), graph.name);
}

}  // namespace thimble
