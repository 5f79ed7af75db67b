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
