// Runs single ops on their samples, for the conformance tests of references and of backends.
#pragma once

#include <string>
#include <vector>

#include "graph/op.h"
#include "support/tensor.h"

namespace thimble {

class Backend;

// A sample with its tensors.
struct OpCase {
  Signature signature;
  std::vector<Tensor> inputs;
  std::vector<Tensor> prior;  // by output: what it is added into, where it can be
};

// The sample's input types with f32 inputs switched to `dtype`: all of them, or as many as the
// shape rule accepts (statistics and the like may have to stay f32).
std::vector<TensorType> switched_types(const OpDef& op, const Sample& sample, DType dtype);

// Contents are drawn for f32 and rounded to `rounded_to`, so that cases that differ in dtype only
// hold the same numbers wherever these can be held exactly.
OpCase make_case(const OpDef& op, const Sample& sample, const std::vector<TensorType>& types,
                 DType rounded_to);
OpCase make_case(const OpDef& op, const Sample& sample);

// How near kernels have to be to the reference, relative to the largest element, in f32. The
// remainder of an update's rounding is a small difference of large numbers, rounded to f32 before.
double tolerance_of(const OpDef& op, const Sample& sample);

struct RunOptions {
  Backend* backend = nullptr;     // null: the reference kernel
  std::vector<Alias> share = {};  // outputs that share bytes with inputs
  int shift = 0;                  // alignment of the buffers, in units of 64 bytes
};

// Runs the case and returns the outputs. Reports a test failure when the kernel wrote outside of
// its outputs.
std::vector<Tensor> run_case(const OpCase& op_case, const RunOptions& options = {});

// Reports a test failure unless each element of `got` is within tolerance * (largest element of
// `expected`); integers must be equal.
void expect_near(const Tensor& got, const Tensor& expected, double tolerance);

// The checks that hold for every kernel of an op, the reference or a backend's: the same bits when
// repeated at other alignments, when outputs overwrite inputs as the op allows, and the sum when
// added into.
void check_repeats(const OpDef& op, const Sample& sample, Backend* backend);
void check_in_place(const OpDef& op, const Sample& sample, Backend* backend);
void check_accumulates(const OpDef& op, const Sample& sample, Backend* backend);

std::string describe(const OpDef& op, const Sample& sample);

// Ops as parameters of a test suite.
std::vector<const OpDef*> ops_under_test();
struct OpName {
  template <class Info>
  std::string operator()(const Info& info) const {
    return std::string(info.param->name);
  }
};

}  // namespace thimble
