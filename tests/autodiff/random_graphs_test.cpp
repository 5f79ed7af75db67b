// Random graphs over every differentiable op (support/check_graph.h). `make fuzz-gradients` tries other
// seeds by the hour.
#include <gtest/gtest.h>

#include "support/check_graph.h"
#include "support/random_graph.h"

namespace thimble {
namespace {

constexpr uint64_t kParts = 8, kGraphs = 256;  // of each part: 2,048 in all

class RandomGradients : public testing::TestWithParam<uint64_t> {};

TEST_P(RandomGradients, AreRightInEveryFormOfTheStep) {
  const auto backend = make_backend("cpu", 1);
  Tally tally;
  for (uint64_t i = 0; i < kGraphs; ++i) {
    const auto fault = find_fault_in_random_graph(GetParam() * kGraphs + i, *backend, tally);
    EXPECT_EQ(fault.value_or(""), "");
  }
  EXPECT_EQ(tally.graphs, static_cast<int64_t>(kGraphs));
  // Kinks within a step of every point that was tried: a value in the middle with exact zeros (padding,
  // places that nothing was added to, what a relu left) in front of a relu or a maximum has one always.
  // One graph in 300 is of that kind, and of 256 at most five.
  EXPECT_LE(tally.unsettled, 5);
  // A new op takes part by its samples (support/ingredients.cpp), or fails here.
  for (const OpDef* op : all_ops()) {
    if (op->gradient == nullptr) continue;
    EXPECT_GE(tally.ops[op->name], 2) << op->name;
  }
  for (const auto& [what, count] : tally.happened) EXPECT_GE(count, 4) << what;
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomGradients, testing::Range(uint64_t{0}, kParts));

}  // namespace
}  // namespace thimble
