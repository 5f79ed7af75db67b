// What an ONNX file holds, as far as it matters here: nodes, tensors, entrances and exits. The fields
// and their numbers are those of onnx.proto3 (IR 3 to 13).
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/number/shape.h"

namespace thimble {

// A tensor of the file. Its bytes stay in the text that was read.
struct OnnxTensor {
  std::string name;
  Shape shape;
  DType dtype = DType::f32;        // bool is u8
  std::span<const std::byte> raw;  // little-endian, as many as the type wants; or:
  std::vector<double> numbers;     // where the file has them as a list

  int64_t elements() const { return shape.elements(); }
  double at(int64_t i) const;
  // All of them. UserError where there are more than a graph's own settings would be.
  std::vector<int64_t> wholes() const;
};

struct OnnxAttribute {
  int64_t whole = 0;
  double real = 0;
  std::string text;
  std::vector<int64_t> wholes;
  std::vector<double> reals;
  std::vector<OnnxTensor> tensors;  // one at most
};

struct OnnxNode {
  std::string op, name;
  bool norm_folded = false;  // into its weights, as the exporter notes beside it
  std::vector<std::string> in, out;
  std::map<std::string, OnnxAttribute, std::less<>> attributes;

  int64_t whole(std::string_view name, int64_t otherwise) const;
  double real(std::string_view name, double otherwise) const;
  std::string_view text(std::string_view name, std::string_view otherwise) const;
  std::vector<int64_t> wholes(std::string_view name, std::vector<int64_t> otherwise) const;
};

struct OnnxEnd {
  std::string name;
  DType dtype = DType::f32;
  std::vector<int64_t> dims;  // 0: whatever there is
};

struct OnnxModel {
  std::string file;  // the bytes, which tensors refer to
  std::string producer;
  int64_t opset = 0;
  std::vector<OnnxNode> nodes;
  std::map<std::string, OnnxTensor, std::less<>> tensors;  // initializers
  std::vector<std::string> order;                          // of their names
  std::vector<OnnxEnd> inputs, outputs;
  // Tensors that the exporter notes to be buffers, less the running statistics: nobody trains them.
  std::set<std::string, std::less<>> buffers;
};

// The call that writes a file which can be trained.
constexpr std::string_view kHowToExport =
    "torch.onnx.export(model, args, file, training=torch.onnx.TrainingMode.TRAINING, "
    "do_constant_folding=False, dynamo=False, dynamic_axes={name: {0: 'rows'}})";

// UserError naming the file where it is none.
OnnxModel read_onnx(const std::string& path);

}  // namespace thimble
