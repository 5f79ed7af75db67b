// Promises of the kernels of every backend, against the reference kernels, on every op's
// samples: a suite of tests to instantiate with a device's name.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <tuple>

#include "backend/backend.h"
#include "support/more_samples.h"
#include "support/op_harness.h"

namespace thimble {

// A device is made once for all ops of a process. In full f32: what is compared with the reference
// must not round its factors.
inline Backend* shared_backend(const std::string& device) {
  static std::map<std::string, std::unique_ptr<Backend>> made;
  std::unique_ptr<Backend>& backend = made[device];
  if (backend == nullptr) backend = make_backend(device, {.threads = 2, .tf32 = false});
  return backend.get();
}

// Remote devices do without f64.
inline bool has_doubles(const Signature& s) {
  const auto is_double = [](const TensorType& type) { return type.dtype == DType::f64; };
  return std::ranges::any_of(s.inputs, is_double) || std::ranges::any_of(s.outputs, is_double);
}

class Conformance : public testing::TestWithParam<std::tuple<std::string, const OpDef*>> {
 protected:
  const OpDef& op() const { return *std::get<1>(GetParam()); }
  Backend* backend() { return shared_backend(std::get<0>(GetParam())); }

  // The op's samples and, on the CPU, more of them. Large ones are included on demand.
  std::vector<Sample> samples(bool large) {
    std::vector<Sample> all = op().samples();
    if (backend()->has_device_memory()) return all;
    for (Sample& sample : more_samples(op())) all.push_back(std::move(sample));
    if (large) {
      for (Sample& sample : large_samples(op())) all.push_back(std::move(sample));
    }
    return all;
  }

  template <class Body>
  void for_each_sample(Body&& body, bool large = false) {
    for (const Sample& sample : samples(large)) {
      if (backend()->has_device_memory()) {
        if (has_doubles(make_case(op(), sample).signature)) continue;
      }
      SCOPED_TRACE(describe(op(), sample));
      SCOPED_TRACE(backend()->kernel(make_case(op(), sample).signature).name);
      body(sample);
    }
  }
};

TEST_P(Conformance, IsNearTheReference) {
  for_each_sample(
      [&](const Sample& sample) {
        const OpCase op_case = make_case(op(), sample);
        const auto expected = run_case(op_case);
        const auto got = run_case(op_case, {.backend = backend()});
        for (size_t k = 0; k < expected.size(); ++k) {
          SCOPED_TRACE(k);
          expect_near(got[k], expected[k], tolerance_of(op(), sample));
        }
      },
      true);
}

// Inputs are the same 16-bit numbers for both kernels; results are rounded to 16 bits after sums in
// another order, so that some end at the neighbour: a unit in the last place (2^-10, 2^-7) of the
// largest.
TEST_P(Conformance, IsNearTheReferenceInSixteenBits) {
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
        expect_near(got[k], expected[k], std::max(tolerance, tolerance_of(op(), sample)));
        EXPECT_TRUE(same_bits(got[k], moved[k])) << "differs at other addresses";
      }
    });
  }
}

TEST_P(Conformance, RepeatsToTheBit) {
  for_each_sample([&](const Sample& sample) { check_repeats(op(), sample, backend()); });
}

TEST_P(Conformance, InPlaceGivesTheSameBits) {
  for_each_sample([&](const Sample& sample) { check_in_place(op(), sample, backend()); });
}

TEST_P(Conformance, AddsIntoItsOutputs) {
  for_each_sample([&](const Sample& sample) {
    // Alone, a process has nobody to get the others' parts from: tests/comm adds among ranks.
    if (op().collective && sample.attrs.integer("ranks", 1) > 1) return;
    check_accumulates(op(), sample, backend());
  });
}

inline std::string conformance_name(
    const testing::TestParamInfo<std::tuple<std::string, const OpDef*>>& info) {
  return std::string(std::get<1>(info.param)->name);
}

}  // namespace thimble
