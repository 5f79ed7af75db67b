// Numbers at the ends of a type: what the kernels of the CPU make of them, against the plain ones, element by
// element. A kernel may flush what is smaller than any normal number, and is as near as it is elsewhere.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "backend/backend.h"
#include "base/error.h"
#include "support/op_harness.h"

namespace thimble {
namespace {

Backend* cpu() {
  static const std::unique_ptr<Backend> made = make_backend("cpu", {.threads = 2});
  return made.get();
}

std::vector<double> extremes(DType dtype) {
  // Largest, smallest normal and smallest of all.
  const double most = dtype == DType::f16    ? 65504
                      : dtype == DType::bf16 ? 0x1.FEp127
                                             : 0x1.FFFFFEp127;
  const double normal = dtype == DType::f16 ? 0x1p-14 : 0x1p-126;
  const double least = dtype == DType::f16 ? 0x1p-24 : dtype == DType::bf16 ? 0x1p-133 : 0x1p-149;
  const double infinite = std::numeric_limits<double>::infinity();
  std::vector<double> all = {std::numeric_limits<double>::quiet_NaN()};
  for (const double x : {0.0, 1.0, 0.5, 3.0, 11.0, 87.0, 89.0, 105.0, 1e-3, most, most / 2, normal,
                         normal / 2, least, infinite}) {
    all.insert(all.end(), {x, -x});
  }
  return all;
}

// Each of them with each, where there are several inputs of the one shape.
OpCase extreme_case(const OpDef& op, const Sample& sample, DType dtype) {
  OpCase result = make_case(op, sample, switched_types(op, sample, dtype), dtype);
  const std::vector<double> all = extremes(dtype);
  for (size_t i = 0; i < result.inputs.size(); ++i) {
    Tensor& input = result.inputs[i];
    if (input.elements() == 1 || !is_floating(input.type().dtype)) continue;
    const size_t every = i == 0 ? 1 : all.size() + i - 1;
    for (int64_t e = 0; e < input.elements(); ++e) {
      input.set(e, all[static_cast<size_t>(e) / every % all.size()]);
    }
  }
  return result;
}

class Extremes : public testing::TestWithParam<const OpDef*> {};

// Whether each element of the result is a function of those at its place.
bool is_pointwise(const OpDef& op, const Sample& sample) {
  if (sample.inputs.empty() || op.updates.size() > 0 || op.view || op.collective) return false;
  for (const TensorType& input : sample.inputs) {
    if (input.shape != sample.inputs[0].shape || input.dtype != DType::f32) return false;
  }
  const std::vector<TensorType> outputs = op.infer(sample.inputs, sample.attrs);
  return outputs.size() == 1 && outputs[0] == sample.inputs[0] && op.rows != nullptr &&
         op.in_place.size() > 0;
}

TEST_P(Extremes, AreWhatThePlainKernelMakesOfThem) {
  const OpDef& op = *GetParam();
  for (Sample sample : op.samples()) {
    if (!is_pointwise(op, sample)) continue;
    const Shape shape = {37, 31};
    for (TensorType& input : sample.inputs) input.shape = shape;
    sample.accumulate = 0;
    try {
      op.infer(sample.inputs, sample.attrs);
    } catch (const UserError&) {
      continue;
    }
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
      SCOPED_TRACE(describe(op, sample) + " in " + std::string(name_of(dtype)));
      const OpCase op_case = extreme_case(op, sample, dtype);
      const Tensor expected = std::move(run_case(op_case)[0]);
      const Tensor got = std::move(run_case(op_case, {.backend = cpu()})[0]);
      const double step = dtype == DType::f16 ? 0x1p-10 : dtype == DType::bf16 ? 0x1p-7 : 1e-5;
      // Below, exp of a large negative number is no longer near, and is times that number.
      const double flushed = dtype == DType::f16 ? 0x1p-23 : 0x1p-118;
      // A gelu is half of x times one plus a number that may be near minus one; a gate is times another.
      const bool is_gate = op.name == "gated";
      const double gelu = op.name.starts_with("gelu") || is_gate ? 4 : 0;
      for (int64_t i = 0; i < expected.elements(); ++i) {
        const double a = got.get(i), b = expected.get(i);
        std::string read;
        for (const Tensor& input : op_case.inputs) {
          read += fmt::format("{} ", input.get(std::min(i, input.elements() - 1)));
        }
        const double factor = is_gate ? std::abs(op_case.inputs[1].get(i)) : 1;
        const double terms = std::isfinite(factor) ? gelu * std::max(1.0, factor) : 0;
        const double close = step * std::max(std::abs(b), terms) + flushed;
        // Infinity times zero is undefined: such a kernel may leave the infinity.
        const bool undefined = std::isnan(b) && !std::isfinite(a);
        const bool alike = undefined || a == b || std::abs(a - b) <= close;
        ASSERT_TRUE(alike) << "of " << read << "it makes " << a << ", not " << b;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, Extremes, testing::ValuesIn([] {
                           std::vector<const OpDef*> ops;
                           for (const OpDef* op : ops_under_test()) {
                             const std::vector<Sample> samples = op->samples();
                             if (std::ranges::any_of(samples, [&](const Sample& sample) {
                                   return is_pointwise(*op, sample);
                                 })) {
                               ops.push_back(op);
                             }
                           }
                           return ops;
                         }()),
                         OpName());

// Infinities and NaNs are counted wherever they lie, and large numbers are not.
TEST(CountNonfinite, TellsTheLargestNumbersFromInfinity) {
  const OpDef& op = *find_op("count_nonfinite");
  constexpr int64_t kMany = 100'003;  // split among threads
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    const std::vector<double> all = extremes(dtype);
    const Sample sample = {.inputs = {{{kMany}, dtype}, {{7}, dtype}}};
    OpCase op_case = make_case(op, sample, sample.inputs, dtype);
    for (int64_t i = 0; i < kMany; ++i) {
      const double x = all[static_cast<size_t>(i) % all.size()];
      op_case.inputs[0].set(i, std::isfinite(x) ? x : 1);
    }
    for (Backend* backend : {static_cast<Backend*>(nullptr), cpu()}) {
      EXPECT_EQ(run_case(op_case, {.backend = backend})[0].get(0), 0) << name_of(dtype);
    }
    for (const int64_t at : {int64_t{0}, kMany / 2, kMany - 1}) {
      const double before = op_case.inputs[0].get(at);
      for (const double wrong :
           {std::numeric_limits<double>::quiet_NaN(), -std::numeric_limits<double>::infinity()}) {
        op_case.inputs[0].set(at, wrong);
        for (Backend* backend : {static_cast<Backend*>(nullptr), cpu()}) {
          EXPECT_EQ(run_case(op_case, {.backend = backend})[0].get(0), 1) << name_of(dtype) << at;
        }
      }
      op_case.inputs[0].set(at, before);
    }
  }
}

}  // namespace
}  // namespace thimble
