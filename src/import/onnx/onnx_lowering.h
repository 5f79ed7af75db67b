// Builds an ONNX graph node by node; the rules are in rules_*.cpp, by what the ops do.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/error.h"
#include "import/lowering.h"
#include "import/onnx/choices.h"
#include "import/onnx/ends.h"
#include "import/onnx/known.h"
#include "import/onnx/onnx_model.h"

namespace thimble {

inline Shape as_shape(const std::vector<int64_t>& dims) {
  return Shape(std::span<const int64_t>(dims));
}

class OnnxLowering {
 public:
  // REQUIRES: all of them outlive it.
  OnnxLowering(const OnnxModel& onnx, const std::vector<OnnxNode>& nodes, const Net& net,
               const ModelOptions& options, const OnnxChoices& choices)
      : onnx_(onnx), nodes_(nodes), options_(options), choices_(choices), l_(net, options) {}

  // A branch whose condition is known, met while nodes were built.
  struct Taken {
    size_t node = 0;
    bool holds = false;
  };

  // The name of the loss. Throws Taken where a branch has to stand in place of its node first.
  std::string lower_all() {
    l_.begin();
    fix_inputs();
    for (const OnnxNode& node : nodes_) {
      try {
        user_check(!node.out.empty(), "it makes nothing");
        node_ = &node;
        lower(node);
        note_whole(node);
      } catch (const Told&) {
        mark_broken(node);
      } catch (const UserError& fault) {
        note(node, fault.what());
      } catch (const std::out_of_range&) {
        note(node, "a list that it is told by is too short");
      }
    }
    l_.check_faults();
    std::string end;
    try {
      end = loss();
    } catch (const Told&) {
      l_.check_faults();
    }
    l_.check_faults();
    return end;
  }
  // As Lowering::finish.
  Model finish(const std::string& loss, const LossParts* parts) {
    return l_.finish(loss, outputs(), parts);
  }
  const Lowering& lowering() const { return l_; }

 private:
  using Names = std::vector<std::string>;
  // A node of the vocabulary could not be built, and its fault is noted.
  struct Told {};

  // Reports the node's fault, unless one of its inputs is broken already. Its readers are then not
  // looked at.
  void note(const OnnxNode& node, std::string_view fault) {
    if (!reads_broken(node)) {
      l_.add_fault(
          fmt::format("{}: {}{}", node.op, fault, node.name.empty() ? "" : " (" + node.name + ")"));
    }
    mark_broken(node);
  }
  void mark_broken(const OnnxNode& node) {
    for (const std::string& made : node.out) l_.mark_broken(made);
  }

  // ---- Inputs of the node at hand

  bool reads_broken(const OnnxNode& node) const {
    return std::ranges::any_of(node.in, [&](const auto& in) { return l_.is_broken(in); });
  }
  bool has(size_t i) const { return i < node_->in.size() && !node_->in[i].empty(); }
  const std::string& name(size_t i) const {
    user_check(has(i), "it has no input {}", i + 1);
    user_check(!l_.is_broken(node_->in[i]), "it reads what could not be built");
    return node_->in[i];
  }
  // Numbers that are known beforehand: of the file, or computed.
  const Known* known(const std::string& of) {
    if (const auto found = known_.find(of); found != known_.end()) return &found->second;
    const auto tensor = onnx_.tensors.find(of);
    if (tensor == onnx_.tensors.end()) return nullptr;
    const OnnxTensor& t = tensor->second;
    user_check(t.refused.empty(), "{}", t.refused);
    if (t.is_real() && t.shape.rank() > 0 && !onnx_.buffers.contains(of)) return nullptr;
    return &(known_[of] = known_of(t));
  }
  static Known known_of(const OnnxTensor& t) {
    Known numbers = filled(t.shape, 0, t.whole);
    for (int64_t i = 0; i < t.elements(); ++i) numbers.numbers[static_cast<size_t>(i)] = t.at(i);
    return numbers;
  }
  // A setting of the node, which may stand in the file like a weight.
  const Known& known_in(size_t i) {
    const Known* found = known(name(i));
    if (found == nullptr) {
      const std::string setting = "setting." + name(i);
      const auto tensor = onnx_.tensors.find(name(i));
      if (const auto told = known_.find(setting); told != known_.end()) return told->second;
      user_check(tensor != onnx_.tensors.end(), "its input {} is not known beforehand", i + 1);
      return known_[setting] = known_of(tensor->second);
    }
    return *found;
  }
  bool all_known() {
    return std::ranges::all_of(
        node_->in, [&](const std::string& one) { return one.empty() || known(one) != nullptr; });
  }
  Shape shape(const std::string& of) {
    if (const Known* numbers = known(of)) return numbers->shape;
    user_check(l_.knows(of), "it reads '{}', which is not there", of);
    return l_.type_of(of).shape;
  }
  // As an operand: a value, or a number.
  Operand operand(const std::string& of) {
    const Known* numbers = known(of);
    if (numbers == nullptr) {
      user_check(l_.knows(of), "it reads '{}', which is not there", of);
      return {of, {}};
    }
    if (numbers->elements() == 1 && numbers->shape.rank() <= 1) return {"", numbers->numbers[0]};
    return {constant_of(*numbers, "known." + of), {}};
  }
  // As a value. Numbers that are the same for every row are kept once, and so serve any number of
  // rows.
  std::string constant_of(const Known& numbers, const std::string& as) {
    if (l_.knows(as)) return as;
    const DType dtype = numbers.whole ? DType::i32 : DType::f32;
    const std::vector<double>& all = numbers.numbers;
    if (std::ranges::all_of(all, [&](double number) { return number == all[0]; })) {
      l_.add_filled(as, {numbers.shape, dtype}, all.empty() ? 0 : all[0]);
      return as;
    }
    const int64_t rows = numbers.shape.rank() > 0 ? numbers.shape[0] : 1;
    const int64_t of_row = numbers.elements() / std::max<int64_t>(1, rows);
    bool alike = rows > 1 && rows == options_.batch;
    for (size_t i = static_cast<size_t>(of_row); i < all.size() && alike; ++i) {
      alike = all[i] == all[i - static_cast<size_t>(of_row)];
    }
    if (!alike) {
      l_.add_constant(as, {numbers.shape, dtype}, all);
      return as;
    }
    std::vector<int64_t> dims(numbers.shape.dims().begin(), numbers.shape.dims().end());
    dims[0] = 1;
    l_.add_constant(as + ".row", {Shape(std::span<const int64_t>(dims)), dtype},
                    {all.begin(), all.begin() + of_row});
    return emit_as("expand", {{as + ".row", {}}}, as, {}, numbers.shape);
  }
  Operand optional(size_t i) { return has(i) ? operand(name(i)) : Operand{}; }

  // ---- Results of the node at hand

  std::string emit_as(std::string op, std::vector<Operand> in, std::string out, Attrs attrs = {},
                      std::optional<Shape> said = {}, Names more = {}) {
    NetNode made = {.op = std::move(op),
                    .in = std::move(in),
                    .out = {out},
                    .attrs = std::move(attrs),
                    .at = node_->name};
    made.out.insert(made.out.end(), more.begin(), more.end());
    if (said) {
      made.shapes.emplace_back();
      for (const int64_t extent : said->dims()) made.shapes[0].push_back({extent, false});
    }
    l_.lower(made);
    if (l_.is_broken(out)) throw Told();
    return out;
  }
  void emit(std::string op, std::vector<Operand> in, Attrs attrs = {},
            std::optional<Shape> said = {}) {
    emit_as(std::move(op), std::move(in), node_->out[0], std::move(attrs), said);
  }
  std::string fresh() { return fmt::format("{}.part{}", node_->out[0], ++parts_); }
  void set_known(Known numbers) { known_[node_->out[0]] = std::move(numbers); }
  std::string reshaped(const std::string& x, const Shape& to, const std::string& out = "") {
    return emit_as("reshape", {{x, {}}}, out.empty() ? fresh() : out, {}, to);
  }
  std::string part(const std::string& x, int64_t axis, int64_t begin, int64_t end,
                   const std::string& out = "") {
    return emit_as("slice", {{x, {}}}, out.empty() ? fresh() : out,
                   {{"axis", axis}, {"begin", begin}, {"end", end}});
  }
  int axis_of(int64_t axis, int rank) const {
    axis = axis < 0 ? axis + rank : axis;
    user_check(axis >= 0 && axis < std::max(1, rank), "there is no axis {} of {}", axis, rank);
    return static_cast<int>(axis);
  }
  // Axes are an attribute of older opsets and an input of newer ones.
  std::vector<int64_t> axes_of(size_t input) {
    return has(input) ? known_in(input).wholes() : node_->wholes("axes", {});
  }

  void fix_inputs();
  void lower(const OnnxNode& node);
  void branch(const OnnxNode& node);

  // Each says whether it knows the op. Rules by what ops do: rules_NAME.cpp.
  bool lower_known(const OnnxNode& node);
  bool lower_extents(const OnnxNode& node);
  bool lower_known_elements(const OnnxNode& node);
  bool lower_known_moves(const OnnxNode& node);
  bool lower_known_lists(const OnnxNode& node);
  bool lower_known_counts(const OnnxNode& node);
  bool lower_shape(const OnnxNode& node);
  bool lower_layer(const OnnxNode& node);
  bool lower_norm(const OnnxNode& node);
  bool lower_pooling(const OnnxNode& node);
  bool lower_elements(const OnnxNode& node);
  bool lower_activation(const OnnxNode& node);
  bool lower_choices(const OnnxNode& node);
  bool lower_sums(const OnnxNode& node);
  bool lower_places(const OnnxNode& node);
  bool lower_sequences(const OnnxNode& node);

  // Whether a value is of whole numbers, which the vocabulary may keep in a floating type.
  bool is_whole(const std::string& of);
  void note_whole(const OnnxNode& node);

  void conv(const OnnxNode& node);
  void conv_of_volumes(const OnnxNode& node);
  void conv_transpose(const OnnxNode& node);
  void gemm(const OnnxNode& node);
  void matmul();
  void einsum(const OnnxNode& node);
  void lstm(const OnnxNode& node);
  void gru(const OnnxNode& node);
  void attention(const OnnxNode& node);
  void gather(const OnnxNode& node);
  void gather_by_places(const OnnxNode& node);
  void take(const Known& places, int axes, const Shape& result);
  std::vector<int64_t> flat_places(const Known& given, const Shape& x) const;
  std::string value_of(size_t i);
  void along(const OnnxNode& node);
  void scatter_by_places(const OnnxNode& node);
  void running_sum(const OnnxNode& node);
  void draw(const OnnxNode& node);
  void clip(const OnnxNode& node);
  void power(const OnnxNode& node);
  std::optional<Shape> shape_made(const OnnxNode& node);
  void slice(const OnnxNode& node);
  void split(const OnnxNode& node);
  void split_to_sequence(const OnnxNode& node);
  void tile(const OnnxNode& node);
  void move_blocks(const OnnxNode& node);
  void pad(const OnnxNode& node);
  void resize(const OnnxNode& node);
  void pool(const OnnxNode& node);

  // Tensors by name, made of others. `out`: under that name, where one is given.

  // Numbers where the operand is a list, or a number that has to be a value.
  std::string as_value(const std::string& of);
  std::string permuted(const std::string& x, const std::vector<int64_t>& axes,
                       const std::string& out = "");
  // With zeros, or another number, in front and behind.
  std::string padded(const std::string& x, int axis, int64_t before, int64_t behind, double value);
  // Places of an axis, in any order.
  std::string picked(const std::string& x, int axis, const std::vector<int64_t>& places,
                     const std::string& out = "");
  // Every step-th of an axis.
  std::string stepped(const std::string& x, int axis, int64_t begin, int64_t end, int64_t step);
  // x where the mask, of ones and zeros, has a one, else y.
  std::string chosen(const Operand& mask, const Operand& x, const Operand& y, std::string out = "");
  // The larger of two, element by element.
  std::string larger(const Operand& x, const Operand& y, bool smaller, std::string out = "");
  // The largest over axes, which stay with an extent of 1; equals share the gradient.
  std::string largest(const std::string& x, const std::vector<int64_t>& axes);
  // An axis whose numbers become sums of them, weighed by a matrix [from, to].
  std::string by_matrix(const std::string& x, int axis, const Known& matrix);
  // Windows over spatial axes, as attributes tell: extents before and behind, by auto_pad, too.
  struct Windows {
    std::vector<int64_t> kernel, stride, dilation, before, behind;
  };
  Windows windows_of(const OnnxNode& node, const Shape& x, std::vector<int64_t> kernel);
  Operand emitted(std::string op, std::vector<Operand> in, Attrs attrs = {},
                  std::optional<Shape> said = {}) {
    return {emit_as(std::move(op), std::move(in), fresh(), std::move(attrs), said), {}};
  }
  // A number for minus infinity where it may be multiplied by zero.
  double far_below() const { return size_of(options_.storage) == 2 ? -6.0e4 : -3.0e38; }

  // The end of a graph (closing.cpp).
  std::string loss();
  // The node that makes a value, and what it made it of by moving numbers around.
  struct Ending {
    const OnnxNode* activation = nullptr;  // Softmax, LogSoftmax, Sigmoid
    std::vector<const OnnxNode*> moves;    // behind it, the last one first
  };
  Ending ending_of(const std::string& end) const;
  std::string before_activation(const std::string& end, const Ending& ending);
  void add_target(const Shape& shape, DType dtype, WholeNumbers numbers);
  std::string cross_entropy(std::string logits, int classes_axis);
  std::string distance(const std::string& output, std::string_view kind);

  std::vector<NetOutput> outputs() const {
    std::vector<NetOutput> ends;
    for (const OnnxEnd& output : onnx_.outputs) {
      if (l_.knows(output.name)) ends.push_back({output.name, output.name});
    }
    return ends;
  }
  const OnnxModel& onnx_;
  const std::vector<OnnxNode>& nodes_;
  const ModelOptions& options_;
  const OnnxChoices& choices_;
  Lowering l_;
  const OnnxNode* node_ = nullptr;
  std::map<std::string, Known, std::less<>> known_;
  std::map<std::string, std::string, std::less<>>
      not_a_number_;                                     // where something is none: of what
  std::map<std::string, Names, std::less<>> sequences_;  // parts of what was split
  std::set<std::string, std::less<>> whole_;
  int parts_ = 0;
};

}  // namespace thimble
