// Every op on its own samples: the record is complete, the reference runs in every floating dtype,
// repeats to the bit, and honours what the record says about sharing bytes. Gradients are checked
// in gradient_test.cpp, the kernels of backends in tests/backend/conformance_test.cpp.
#include <gtest/gtest.h>

#include "base/error.h"
#include "graph/builder.h"
#include "graph/updates.h"
#include "support/more_samples.h"
#include "support/op_harness.h"

namespace thimble {
namespace {

class Conformance : public testing::TestWithParam<const OpDef*> {
 protected:
  const OpDef& op() const { return *GetParam(); }

  template <class Body>
  void for_each_sample(Body&& body) {
    std::vector<Sample> samples = op().samples();
    for (Sample& sample : more_samples(op())) samples.push_back(std::move(sample));
    for (const Sample& sample : samples) {
      SCOPED_TRACE(describe(op(), sample));
      body(sample);
    }
  }
};

TEST_P(Conformance, RecordIsComplete) {
  EXPECT_FALSE(op().summary.empty());
  ASSERT_NE(op().infer, nullptr);
  ASSERT_NE(op().reference, nullptr);
  ASSERT_NE(op().samples, nullptr);
  EXPECT_FALSE(op().samples().empty());
  EXPECT_EQ(find_op(op().name), &op());
  if (!op().updates.empty()) {
    EXPECT_EQ(op().recompute, Recompute::never);
  }
}

// An input that may be left out, too.
TEST_P(Conformance, EveryAliasNamesAnInputAndAnOutput) {
  size_t inputs = 0;
  for_each_sample([&](const Sample& sample) { inputs = std::max(inputs, sample.inputs.size()); });
  for_each_sample([&](const Sample& sample) {
    const size_t outputs = op().infer(sample.inputs, sample.attrs).size();
    for (const auto aliases : {std::span(op().in_place), updates_of(op(), outputs)}) {
      for (const Alias& alias : aliases) {
        EXPECT_LT(static_cast<size_t>(alias.output), outputs);
        EXPECT_LT(static_cast<size_t>(alias.input), inputs);
      }
    }
    EXPECT_LT(sample.accumulate, uint64_t{1} << outputs);
    EXPECT_EQ(sample.accumulate & ~op().accumulates, 0u) << "a sample adds into what cannot be";
  });
}

// The op's part of the error contract: UserError, beginning with the op's name.
TEST_P(Conformance, WrongNumberOfInputsIsTheCallersMistake) {
  const Sample sample = op().samples().front();
  std::vector<TensorType> types;
  if (sample.inputs.empty()) types.push_back({});
  try {
    op().infer(types, sample.attrs);
    ADD_FAILURE() << "accepted " << types.size() << " inputs";
  } catch (const UserError& error) {
    EXPECT_EQ(std::string(error.what()).rfind(fmt::format("[{}]", op().name), 0), 0u)
        << error.what();
  }
}

TEST_P(Conformance, GraphOfOneNodeIsWellFormed) {
  for_each_sample([&](const Sample& sample) {
    Graph graph;
    Builder build(graph);
    std::vector<ValueId> inputs;
    for (size_t i = 0; i < sample.inputs.size(); ++i) {
      inputs.push_back(build.input(fmt::format("x{}", i), sample.inputs[i]));
    }
    build.apply(op().name, inputs, sample.attrs);
    EXPECT_NO_THROW(verify_graph(graph));
    EXPECT_GT(op().work_of(signature_of(graph, {0})).bytes, op().view ? -1.0 : 0.0);
  });
}

TEST_P(Conformance, ReferenceIsNearInSixteenBits) {
  // Both runs see the same 16-bit numbers, so what differs is how results are rounded: a few units
  // in the last place (2^-11 and 2^-8) of the largest.
  const std::pair<DType, double> cases[] = {{DType::f16, 2e-3}, {DType::bf16, 1.6e-2}};
  for (const auto& [dtype, tolerance] : cases) {
    for_each_sample([&](const Sample& sample) {
      SCOPED_TRACE(name_of(dtype));
      const std::vector<TensorType> types = switched_types(op(), sample, dtype);
      const auto small = run_case(make_case(op(), sample, types, dtype));
      const auto wide = run_case(make_case(op(), sample, sample.inputs, dtype));
      ASSERT_EQ(small.size(), wide.size());
      for (size_t k = 0; k < small.size(); ++k) {
        SCOPED_TRACE(k);
        expect_near(small[k], wide[k], tolerance);
      }
    });
  }
}

TEST_P(Conformance, ReferenceIsNearInDouble) {
  for_each_sample([&](const Sample& sample) {
    const std::vector<TensorType> types = switched_types(op(), sample, DType::f64);
    const auto wide = run_case(make_case(op(), sample, types, DType::f32));
    const auto single = run_case(make_case(op(), sample));
    for (size_t k = 0; k < single.size(); ++k) {
      SCOPED_TRACE(k);
      expect_near(single[k], wide[k], tolerance_of(op(), sample));
    }
  });
}

TEST_P(Conformance, ReferenceRepeatsToTheBit) {
  for_each_sample([&](const Sample& sample) { check_repeats(op(), sample, nullptr); });
}

TEST_P(Conformance, ReferenceInPlaceGivesTheSameBits) {
  for_each_sample([&](const Sample& sample) { check_in_place(op(), sample, nullptr); });
}

TEST_P(Conformance, ReferenceAddsIntoItsOutputs) {
  for_each_sample([&](const Sample& sample) {
    // Alone, a process has nobody to get the others' parts from: tests/comm adds among ranks.
    if (op().collective && sample.attrs.integer("ranks", 1) > 1) return;
    check_accumulates(op(), sample, nullptr);
  });
}

INSTANTIATE_TEST_SUITE_P(Ops, Conformance, testing::ValuesIn(ops_under_test()), OpName());

TEST(OpTable, IsSortedByName) {
  for (size_t i = 1; i < all_ops().size(); ++i)
    EXPECT_LT(all_ops()[i - 1]->name, all_ops()[i]->name);
}

TEST(OpTable, KnowsNoOtherNames) { EXPECT_EQ(find_op("no_such_op"), nullptr); }

}  // namespace
}  // namespace thimble
