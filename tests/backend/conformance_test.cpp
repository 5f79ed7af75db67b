// The kernels of every backend that runs here, against the reference kernels, on every op's
// samples.
#include <gtest/gtest.h>

#include <memory>

#include "backend/backend.h"
#include "support/op_harness.h"

namespace thimble {
namespace {

// Backends whose memory is plain memory; device backends bring their own test.
class CpuConformance : public testing::TestWithParam<const OpDef*> {
 protected:
  const OpDef& op() const { return *GetParam(); }
  Backend* backend() { return backend_.get(); }

  template <class Body>
  void for_each_sample(Body&& body) {
    for (const Sample& sample : op().samples()) {
      SCOPED_TRACE(describe(op(), sample));
      SCOPED_TRACE(backend_->kernel(make_case(op(), sample).signature).name);
      body(sample);
    }
  }

 private:
  std::unique_ptr<Backend> backend_ = make_backend("cpu", 2);
};

TEST_P(CpuConformance, IsNearTheReference) {
  for_each_sample([&](const Sample& sample) {
    const OpCase op_case = make_case(op(), sample);
    const auto expected = run_case(op_case);
    const auto got = run_case(op_case, {.backend = backend()});
    for (size_t k = 0; k < expected.size(); ++k) {
      SCOPED_TRACE(k);
      expect_near(got[k], expected[k], op().tolerance);
    }
  });
}

// Inputs are the same 16-bit numbers for both kernels; results are rounded to 16 bits after sums in
// another order, so that some end at the neighbour: a unit in the last place (2^-10, 2^-7) of the
// largest.
TEST_P(CpuConformance, IsNearTheReferenceInSixteenBits) {
  const std::pair<DType, double> cases[] = {{DType::f16, 1e-3}, {DType::bf16, 8e-3}};
  for (const auto& [dtype, tolerance] : cases) {
    for_each_sample([&](const Sample& sample) {
      SCOPED_TRACE(name_of(dtype));
      const std::vector<TensorType> types = switched_types(op(), sample, dtype);
      const OpCase op_case = make_case(op(), sample, types, dtype);
      const auto expected = run_case(op_case);
      const auto got = run_case(op_case, {.backend = backend()});
      const auto moved = run_case(op_case, {.backend = backend(), .shift = 3});
      for (size_t k = 0; k < expected.size(); ++k) {
        SCOPED_TRACE(k);
        expect_near(got[k], expected[k], std::max(tolerance, op().tolerance));
        EXPECT_TRUE(same_bits(got[k], moved[k])) << "differs at other addresses";
      }
    });
  }
}

TEST_P(CpuConformance, RepeatsToTheBit) {
  for_each_sample([&](const Sample& sample) { check_repeats(op(), sample, backend()); });
}

TEST_P(CpuConformance, InPlaceGivesTheSameBits) {
  for_each_sample([&](const Sample& sample) { check_in_place(op(), sample, backend()); });
}

TEST_P(CpuConformance, AddsIntoItsOutputs) {
  for_each_sample([&](const Sample& sample) { check_accumulates(op(), sample, backend()); });
}

INSTANTIATE_TEST_SUITE_P(Ops, CpuConformance, testing::ValuesIn(ops_under_test()), OpName());

}  // namespace
}  // namespace thimble
