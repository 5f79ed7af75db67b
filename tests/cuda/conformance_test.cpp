// The kernels of the GPU.
#include "support/conformance.h"

#include <fmt/format.h>

#include "base/number/bits.h"

namespace thimble {
namespace {

INSTANTIATE_TEST_SUITE_P(Cuda, Conformance,
                         testing::Combine(testing::Values("cuda"),
                                          testing::ValuesIn(ops_under_test())),
                         conformance_name);

// Fills draw no mask with long stretches of zeros: here parts of the mask have no nonzero, and
// blocks of codes have theirs from several parts.
TEST(CudaGatherFold, FindsNonzerosThatLieFarApart) {
  const OpDef& op = *find_op("gather_fold_8bit");
  const int64_t elements = 30000, total = 3000, blocks = 12;
  const std::vector<bool (*)(int64_t)> masks = {
      [](int64_t i) { return i == 29999; },
      [](int64_t i) { return i >= 9000 && i < 9400; },
      [](int64_t i) { return i % 100 == 99; },
      [](int64_t i) { return i % 2048 == 0 || i > 29700; },
      [](int64_t i) { return i >= 3840 && i < 5120; },
      [](int64_t i) { return i % 14 == 3; },
  };
  for (size_t which = 0; which < masks.size(); ++which) {
    for (const double first : {0.0, 77.0, 256.0, 700.0}) {
      SCOPED_TRACE(fmt::format("mask {} from {} on", which, first));
      const Sample sample = {.inputs = {{{total}, DType::u8},
                                        {{blocks}},
                                        {{elements}},
                                        {{1}, DType::i64},
                                        {{elements / 8}, DType::u8},
                                        {{3}, DType::i64}},
                             .attrs = {{"stream", int64_t{7}}},
                             .fills = {{Fill::Kind::bytes},
                                       {Fill::Kind::uniform, 0.1, 1},
                                       {},
                                       {Fill::Kind::labels, first, first + 1},
                                       {Fill::Kind::zeros},
                                       {Fill::Kind::labels, 0, 1000}}};
      OpCase op_case = make_case(op, sample);
      auto* const mask = op_case.inputs[4].ref().as<uint8_t>();
      for (int64_t i = 0; i < elements; ++i) {
        if (masks[which](i)) set_bit(mask, i);
      }
      const auto expected = run_case(op_case);
      const auto got = run_case(op_case, {.backend = shared_backend("cuda")});
      ASSERT_FALSE(same_bits(expected[0], op_case.inputs[0]));
      EXPECT_TRUE(same_bits(got[0], expected[0]));
      EXPECT_TRUE(same_bits(got[1], expected[1]));
    }
  }
}

}  // namespace
}  // namespace thimble
