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
#include "import/onnx/known.h"
#include "import/onnx/onnx_model.h"

namespace thimble {

inline Shape as_shape(const std::vector<int64_t>& dims) {
  return Shape(std::span<const int64_t>(dims));
}

class OnnxLowering {
 public:
  OnnxLowering(const OnnxModel& onnx, const Net& net, const ModelOptions& options)
      : onnx_(onnx), options_(options), l_(net, options) {}

  // As Lowering::build.
  Model build(const LossParts* parts) {
    const std::string end = lower_all();
    return l_.finish(end, outputs(), parts);
  }

  // The name of the loss.
  std::string lower_all() {
    l_.begin();
    for (const OnnxNode& node : onnx_.nodes) {
      try {
        user_check(!node.out.empty(), "it makes nothing");
        node_ = &node;
        lower(node);
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
  const Lowering& lowering() const { return l_; }

 private:
  using Names = std::vector<std::string>;
  // A node of the vocabulary could not be built, and its fault is noted.
  struct Told {};

  // What is wrong with a node, unless something is wrong with what it reads; readers of it are not
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

  // What a node reads.

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
    const bool trained = t.dtype == DType::f32 && t.shape.rank() > 0 && !onnx_.buffers.contains(of);
    if (trained) return nullptr;
    Known numbers = filled(t.shape, 0, t.dtype != DType::f32 && t.dtype != DType::f64);
    for (int64_t i = 0; i < t.elements(); ++i) numbers.numbers[static_cast<size_t>(i)] = t.at(i);
    return &(known_[of] = std::move(numbers));
  }
  const Known& known_in(size_t i) {
    const Known* found = known(name(i));
    user_check(found != nullptr, "its input {} is not known beforehand", i + 1);
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
  // As a value. What is the same for every row is kept once, so that it serves any number of them.
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

  // What it makes.

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
  std::string reshaped(const std::string& x, const Shape& to, std::string out = "") {
    return emit_as("reshape", {{x, {}}}, out.empty() ? fresh() : out, {}, to);
  }
  std::string part(const std::string& x, int64_t axis, int64_t begin, int64_t end,
                   std::string out = "") {
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

  void lower(const OnnxNode& node);
  bool lower_known(const OnnxNode& node);
  bool lower_shape(const OnnxNode& node);
  bool lower_layer(const OnnxNode& node);
  bool lower_elements(const OnnxNode& node);
  bool lower_places(const OnnxNode& node);
  void conv(const OnnxNode& node, bool transposed);
  void gemm(const OnnxNode& node);
  void matmul();
  void lstm(const OnnxNode& node);
  void gather(const OnnxNode& node);
  void gather_by_places(const OnnxNode& node);
  void take(const Known& places, int axes, const Shape& result);
  std::vector<int64_t> flat_places(const Known& given, const Shape& x) const;
  std::string value_of(size_t i);
  void along(const OnnxNode& node);
  void scatter_by_places(const OnnxNode& node);
  void running_sum(const OnnxNode& node);
  void draw(const OnnxNode& node);
  void slice(const OnnxNode& node);
  void resize(const OnnxNode& node);

  std::vector<NetOutput> outputs() const {
    std::vector<NetOutput> ends;
    for (const OnnxEnd& output : onnx_.outputs) {
      if (l_.knows(output.name)) ends.push_back({output.name, output.name});
    }
    return ends;
  }
  std::string loss();

  const OnnxModel& onnx_;
  const ModelOptions& options_;
  Lowering l_;
  const OnnxNode* node_ = nullptr;
  std::map<std::string, Known, std::less<>> known_;
  std::map<std::string, std::string, std::less<>>
      not_a_number_;                                     // where something is none: of what
  std::map<std::string, Names, std::less<>> sequences_;  // parts of what was split
  int parts_ = 0;
};

}  // namespace thimble
