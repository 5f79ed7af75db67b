// The contents of an ONNX file, as far as they matter here: nodes, tensors, entrances and exits.
// The fields and their numbers are those of onnx.proto3 (IR 3 to 13).
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/io/mapped_file.h"
#include "base/number/shape.h"

namespace thimble {

// A tensor of the file. Its bytes stay where they are: in the file, or in one beside it.
struct OnnxTensor {
  std::string name;
  Shape shape;
  DType dtype = DType::f32;        // bool is u8
  bool whole = false;              // of whole numbers
  std::span<const std::byte> raw;  // little-endian, as many as the type wants; or:
  std::vector<double> numbers;     // where the file has them as a list, or in a type of few bits
  std::string refused;             // why its numbers cannot be had; empty: they can

  int64_t elements() const { return shape.elements(); }
  // Numbers that a net computes with, which may be weights.
  bool is_real() const { return refused.empty() && is_floating(dtype) && dtype != DType::f64; }
  double at(int64_t i) const;
  // All of them. UserError where there are more than a graph's own settings would be.
  std::vector<int64_t> wholes() const;
};

struct OnnxNode;

// A branch of a node (If). Names that are its own are told apart from all others; what it reads of
// the graph around it goes by the names there.
struct OnnxBranch {
  std::vector<OnnxNode> nodes;
  std::vector<std::string> outputs;
};

struct OnnxAttribute {
  int64_t whole = 0;
  double real = 0;
  std::string text;
  std::vector<int64_t> wholes;
  std::vector<double> reals;
  std::vector<OnnxTensor> tensors;           // one at most
  std::shared_ptr<const OnnxBranch> branch;  // or none
};

struct OnnxNode {
  std::string op, name;      // an op of another than ONNX's own domain: "com.microsoft.FusedConv"
  bool norm_folded = false;  // into its weights, as the exporter notes beside it
  std::vector<std::string> in, out;
  std::map<std::string, OnnxAttribute, std::less<>> attributes;

  int64_t whole(std::string_view name, int64_t otherwise) const;
  double real(std::string_view name, double otherwise) const;
  std::string_view text(std::string_view name, std::string_view otherwise) const;
  std::vector<int64_t> wholes(std::string_view name, const std::vector<int64_t>& otherwise) const;
};

struct OnnxAxis {
  int64_t extent = 0;  // 0: whatever there is
  std::string symbol;  // that it goes by, or empty
};

struct OnnxEnd {
  std::string name;
  DType dtype = DType::f32;
  std::string refused;  // why its type cannot be read; empty: it can
  std::vector<OnnxAxis> axes;
};

struct OnnxModel {
  std::vector<std::shared_ptr<const MappedFile>> files;  // which tensors refer to
  std::string producer;
  int64_t opset = 0;  // of ONNX's own ops
  std::vector<OnnxNode> nodes;
  std::map<std::string, OnnxTensor, std::less<>> tensors;  // initializers, those of branches too
  std::vector<std::string> order;                          // of their names
  std::vector<OnnxEnd> inputs, outputs;
  // Tensors that the exporter notes to be buffers, less the running statistics: nobody trains them.
  std::set<std::string, std::less<>> buffers;

  void add_tensor(OnnxTensor tensor);  // UserError where the name is taken
};

// The call that writes a file which can be trained.
constexpr std::string_view kHowToExport =
    "torch.onnx.export(model, args, file, training=torch.onnx.TrainingMode.TRAINING, "
    "do_constant_folding=False, dynamo=False, dynamic_axes={name: {0: 'rows'}})";

// UserError naming the file where it is none.
OnnxModel read_onnx(const std::string& path);

// Has every weight be a tensor of its own, whichever way the exporter wrote it (tidy_onnx.cpp).
void tidy(OnnxModel& model);

}  // namespace thimble
