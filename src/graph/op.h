// An op is one record in one file of src/ops. Planner, autodiff and backends know ops only through
// this record, so adding an op touches one file. A fast kernel is one more, of the same name, in a
// backend's folder. Everything here is plain data and free functions.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/number/ids.h"
#include "base/number/shape.h"
#include "graph/attrs.h"

namespace thimble {

class Builder;
class Communicator;
class GradientBuilder;
struct RowCall;
struct RowFlow;

// A tensor as a kernel sees it: where it is and what it is.
struct TensorRef {
  void* data = nullptr;
  TensorType type;

  template <class T>
  T* as() const {
    return static_cast<T*>(data);
  }
  int64_t elements() const { return type.elements(); }
};

// One call of a kernel. REQUIRES of every kernel: it allocates nothing, writes only its outputs and
// workspace, and gives the same bits for the same input bits. An input that it shares bytes with
// (in_place, updates) it reads before overwriting it.
struct KernelArgs {
  const Attrs* attrs = nullptr;
  std::span<const TensorRef> inputs;
  std::span<const TensorRef> outputs;
  uint32_t accumulate = 0;  // bit k: add into output k instead of writing it
  std::byte* workspace = nullptr;
  Communicator* ranks = nullptr;  // of collectives; null: this process stands for all ranks

  bool adds_into(size_t output) const { return ((accumulate >> output) & 1u) != 0; }
};

// Whether the planner may run the op a second time. `never` is for side effects and for updates.
enum class Recompute : uint8_t { cheap, costly, never };

// Output `output` shares its bytes with input `input`.
struct Alias {
  int output = 0;
  int input = 0;
};

// Everything that decides which kernel runs a node and how much work it is. Nodes with equal
// signatures share kernels, costs and solutions.
struct Signature {
  const struct OpDef* op = nullptr;
  Attrs attrs;
  std::vector<TensorType> inputs;
  std::vector<TensorType> outputs;
  uint32_t accumulate = 0;

  bool operator==(const Signature&) const = default;
};

struct SignatureHash {
  size_t operator()(const Signature& signature) const;
};

// Work done by one run: floating-point operations, and bytes moved to and from memory.
struct Work {
  double flops = 0;
  double bytes = 0;
};

// How the conformance harness fills one input of a sample.
struct Fill {
  enum class Kind : uint8_t { normal, uniform, labels, zeros, ones, bytes } kind = Kind::normal;
  double low = 0;   // uniform: range; normal: mean is (low + high) / 2, deviation 1
  double high = 0;  // labels: integers in [low, high)
};

// One case for the conformance harness.
struct Sample {
  std::vector<TensorType> inputs;
  Attrs attrs = {};
  std::vector<Fill> fills = {};         // one per input; missing ones are `normal`
  std::vector<int> differentiate = {};  // inputs whose gradients are checked by finite differences
  uint32_t accumulate = 0;              // outputs to add into
  // Where the op alone is no function with a gradient of its own (batch_norm reads statistics of
  // its own input): builds the function to differentiate, from the inputs.
  ValueId (*build)(Builder& builder, std::span<const ValueId> inputs) = nullptr;
};

// How an op reads an input, which says what becomes of its results when the input is rounded.
enum class Reading : uint8_t {
  linear,  // results are linear in it: right on average where it is
  curved,  // they are not, but smooth: of an error that is nought on average, its square is left
  exact,   // they depend on it too much for any error
  sign,    // all that is read is where it is above zero
};

// A product of rows with a matrix, input 1, and the inputs that are added to it; -1: there is none.
struct ProductForm {
  bool row_per_output = false;  // the matrix has a row for each column of the product
  int bias = -1;                // a number for each column
  int addend = -1;              // of the product's shape
};

struct OpDef {
  std::string_view name;  // = file name = table entry
  std::string_view summary;

  // Types of the outputs; throws UserError beginning with "[name]" when the inputs do not fit.
  std::vector<TensorType> (*infer)(std::span<const TensorType> inputs,
                                   const Attrs& attrs) = nullptr;
  // Gives gradients of the inputs, written with the public builder. It must name exactly the
  // forward values it reads. Null: the op is not differentiable (gradients stop here).
  void (*gradient)(GradientBuilder& gradient) = nullptr;
  // The plain kernel: every floating dtype, no vector tricks.
  void (*reference)(const KernelArgs& args) = nullptr;
  // Scratch the plain kernel needs; null: none.
  Bytes (*reference_workspace)(const Signature& signature) = nullptr;
  // Null: no flops, and one pass over inputs and outputs.
  Work (*work)(const Signature& signature) = nullptr;
  std::vector<Sample> (*samples)() = nullptr;
  // How the rows of a batch pass into output `output` (graph/row_flow.h), where they pass at all.
  // Null: it may depend on all of them at once.
  RowFlow (*rows)(const RowCall& call, size_t output) = nullptr;

  Recompute recompute = Recompute::cheap;
  std::vector<Alias> in_place = {};  // output may overwrite input, when this is its last reader
  std::vector<Alias> updates = {};   // output is the next version of input, at the same bytes
  // How input `input` is read. Null: all of them linearly.
  Reading (*reading)(const Attrs& attrs, size_t input) = nullptr;
  // Whether output 0 is never below zero. Null: it may be.
  bool (*nonnegative)(const Attrs& attrs) = nullptr;
  // A gradient that finds the mask of a fused relu from its inputs: the one that it masks; -1 or
  // null: there is none. With attr act = none it is what is left when relu_backward, of output 0 of
  // the forward node, has masked that input.
  int (*masks_input)(const Attrs& attrs) = nullptr;
  // How it multiplies the rows of input 0 by a matrix. Null, or none: with these attrs it does not.
  std::optional<ProductForm> (*product)(const Attrs& attrs, size_t inputs) = nullptr;
  // Whether output 0 is input 0 as it is. Null: it is not.
  bool (*is_identity)(const Attrs& attrs) = nullptr;
  // Of a gradient: with attr takes_over = 1 it makes everything that its forward node makes as
  // well, behind its own outputs and to the same bits.
  bool takes_over = false;
  bool view = false;         // output 0 is input 0 seen with another shape; nothing runs
  bool casts = false;        // output 0 is input 0 in another dtype
  bool mixes_rows = false;   // what becomes of one row depends on the others
  bool normalizes = false;   // brings a layer's numbers to a common scale
  bool reduces = false;      // output 0 has one number for all along some axes of input 0
  int filter = -1;           // of a convolution: the input that holds its weights
  uint32_t maps = 0;         // bit i: input i is the matrix of a linear map of what flows through
  uint32_t tables = 0;       // bit i: input i has a row per word: one is read, or all of them score
  uint32_t sums = 0;         // bit i: output 0 is input i, and what other inputs add to it
  int logits = -1;           // of a loss: the input that it takes the softmax of
  bool commutes = false;     // inputs 0 and 1 may change places
  bool decodes = false;      // input 1 and those behind are a coded matrix (graph/coded_weight.h)
  bool packs = false;        // picks the gradients of a sparse weight's nonzeros
  bool collective = false;   // every rank takes part, in the order of the plan that all of them run
  bool expands = false;      // output 0 is a weight, made of packed nonzeros and a bitmap
  bool slices = false;       // output 0 is a part of one axis of input 0: attrs axis, begin, end
  uint32_t accumulates = 0;  // bit k: output k can be added into
  double tolerance = 1e-5;   // backend against reference, relative to the largest element, f32

  // Work of a signature, whether or not the op states its own.
  Work work_of(const Signature& signature) const;
};

// The generated table of src/ops, in name order (definitions live in the build folder).
std::span<const OpDef* const> all_ops();
// Null when there is no such op.
const OpDef* find_op(std::string_view name);

}  // namespace thimble
