// A network from outside, as a file says it: entrances, parameters, nodes in a vocabulary close to
// PyTorch's, a loss. Axes and layouts are the other program's; sizes may be multiples of the rows
// of a batch. Plain data, checked for form by read_net(); what the nodes mean is checked as they
// are built.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/number/shape.h"
#include "graph/attrs.h"

namespace thimble {

// So many, or so many for every row.
struct Extent {
  int64_t count = 0;
  bool of_rows = false;
};
using Extents = std::vector<Extent>;

// For a batch of so many rows; UserError where that is beyond any memory.
Shape shape_for(const Extents& extents, int64_t rows);

struct NetInput {
  std::string name;  // and that of the field of records that fills it
  DType dtype = DType::f32;
  Extents shape;  // rows first
  bool target = false;
};

struct NetParameter {
  std::string name;
  Shape shape;
  bool trained = true;            // false: no gradient, no state
  std::vector<std::string> also;  // other names of the same tensor
  size_t group = 0;
};

struct NetTensor {
  std::string name;
  Shape shape;
  DType dtype = DType::f32;
};

// Exceptions of the optimizer for some parameters.
struct NetGroup {
  double rate = 1;              // times the run's
  std::optional<double> decay;  // in place of the run's
};

// An input of a node: a value, a number, or nothing.
struct Operand {
  std::string value;
  std::optional<double> number = {};

  bool none() const { return value.empty() && !number; }
};

struct NetNode {
  std::string op;
  std::vector<Operand> in;
  std::vector<std::string> out;
  std::vector<Extents> shapes;  // of out
  Attrs attrs;
  std::string at;  // where it stands in the source of whoever wrote the net; for messages
};

struct NetOutput {
  std::string name, value;
};

struct Net {
  std::string name;
  int64_t batch = 1;    // usual rows
  std::string weights;  // the path of a safetensors file with first values
  std::vector<NetInput> inputs;
  std::vector<NetParameter> parameters;
  std::vector<NetTensor> buffers;    // running statistics
  std::vector<NetTensor> constants;  // numbers that nobody trains
  std::vector<NetGroup> groups;
  std::vector<NetNode> nodes;  // in order: what a node reads is there before it
  std::string loss;
  std::vector<NetOutput> outputs;
};

// Reads NAME.json. The file may be hostile. UserError naming it, with all that is wrong with it.
Net read_net(const std::string& path);

}  // namespace thimble
