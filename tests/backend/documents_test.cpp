// attention over rows of several documents: the CPU's kernels, at sizes of several tiles.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "backend/backend.h"
#include "ops/attend/attention_scores.h"
#include "support/op_harness.h"

namespace thimble {
namespace {

constexpr int64_t kLength = 300;
// The first two fill whole tiles of 64 keys, the others do not.
constexpr int64_t kDocuments[] = {128, 64, 1, 70, 37};

struct PackedRow {
  OpCase forward, backward;
  AttentionGeometry g;
};

void set_begins(Tensor& begins) {
  const int64_t rows = begins.elements() / kLength;
  for (int64_t n = 0; n < rows; ++n) {
    int64_t at = 0;
    for (const int64_t length : kDocuments) {
      for (int64_t i = 0; i < length; ++i)
        begins.set(n * kLength + at + i, static_cast<double>(at));
      at += length;
    }
  }
}

// Few key heads in one row are shared between two threads, many are not.
PackedRow packed_row(int64_t rows, bool packed, double dropout, DType dtype) {
  const AttentionCase c = {.rows = rows,
                           .queries = kLength,
                           .keys = kLength,
                           .heads = 4,
                           .groups = 2,
                           .size = 20,
                           .causal = true,
                           .padded = false,
                           .packed = packed,
                           .dropout = dropout,
                           .documents = true};
  const OpDef &op = *find_op("attention"), &gradient = *find_op("attention_backward");
  Sample sample = {.inputs = c.sources(), .attrs = c.attrs()};
  PackedRow made = {.g = attention_geometry("attention", sample.inputs, sample.attrs)};
  const TensorType y = made.g.result(DType::f32);
  Sample back = sample;
  c.add_extras(sample);
  back.inputs.insert(back.inputs.end(), {y, made.g.lse(DType::f32), y});
  c.add_extras(back);
  made.forward = make_case(op, sample, switched_types(op, sample, dtype), dtype);
  made.backward = make_case(gradient, back, switched_types(gradient, back, dtype), dtype);
  const size_t sources = made.g.sources();
  set_begins(made.forward.inputs[sources]);
  set_begins(made.backward.inputs[sources + 3]);
  return made;
}

// The gradient's case with the results of the forward one.
void take_results(PackedRow& made, const std::vector<Tensor>& results) {
  const size_t sources = made.g.sources();
  for (size_t i = 0; i < sources; ++i) made.backward.inputs[i] = made.forward.inputs[i];
  made.backward.inputs[sources] = results[0];
  made.backward.inputs[sources + 1] = results[1];
}

TEST(AttentionOfDocuments, GivesTheNumbersOfTheReference) {
  const auto cpu = make_backend("cpu", {.threads = 2});
  for (const int64_t rows : {1, 5}) {
    for (const bool packed : {false, true}) {
      for (const double dropout : {0.0, 0.2}) {
        for (const auto& [dtype, tolerance] :
             {std::pair{DType::f32, 1e-5}, {DType::bf16, 1.6e-2}}) {
          PackedRow row = packed_row(rows, packed, dropout, dtype);
          const auto expected = run_case(row.forward);
          const auto got = run_case(row.forward, {.backend = cpu.get()});
          for (size_t k = 0; k < got.size(); ++k) expect_near(got[k], expected[k], tolerance);
          take_results(row, expected);
          const auto gradients = run_case(row.backward);
          const auto ours = run_case(row.backward, {.backend = cpu.get()});
          EXPECT_NE(cpu->kernel(row.backward.signature).name, "reference");
          for (size_t k = 0; k < ours.size(); ++k) expect_near(ours[k], gradients[k], tolerance);
        }
      }
    }
  }
}

// Scores of tiles that lie wholly in other documents are not computed: no number of the first
// document, not even one that is none, reaches the others.
TEST(AttentionOfDocuments, SkipsTilesOfOtherDocuments) {
  const auto cpu = make_backend("cpu", {.threads = 2});
  for (const int64_t rows : {1, 5}) {
    PackedRow row = packed_row(rows, false, 0, DType::f32);
    const auto results = run_case(row.forward, {.backend = cpu.get()});
    take_results(row, results);
    const auto gradients = run_case(row.backward, {.backend = cpu.get()});
    const auto poison = [&](OpCase& of) {
      for (Tensor& input : of.inputs) {
        if (input.type().shape.rank() != 3 || input.type().shape[1] != kLength) continue;
        const int64_t step = input.type().shape[2];
        for (int64_t n = 0; n < rows; ++n) {
          for (int64_t i = 0; i < kDocuments[0] * step; ++i) {
            input.set(n * kLength * step + i, std::numeric_limits<double>::quiet_NaN());
          }
        }
      }
    };
    const auto expect_rest = [&](const Tensor& got, const Tensor& expected) {
      const int64_t step = got.type().shape[2];
      for (int64_t n = 0; n < rows; ++n) {
        for (int64_t i = kDocuments[0] * step; i < kLength * step; ++i) {
          ASSERT_EQ(got.get(n * kLength * step + i), expected.get(n * kLength * step + i)) << i;
        }
        ASSERT_TRUE(std::isnan(got.get(n * kLength * step))) << "the document itself was computed";
      }
    };
    poison(row.forward);
    poison(row.backward);
    expect_rest(run_case(row.forward, {.backend = cpu.get()})[0], results[0]);
    const auto after = run_case(row.backward, {.backend = cpu.get()});
    for (size_t k = 0; k < after.size(); ++k) expect_rest(after[k], gradients[k]);
  }
}

// No number that `begins` may hold reads another byte than those of the row.
TEST(AttentionOfDocuments, TakesAnyBegins) {
  const auto cpu = make_backend("cpu", {.threads = 2});
  PackedRow row = packed_row(1, false, 0, DType::f32);
  const auto set = [&](auto begin_of) {
    for (OpCase* of : {&row.forward, &row.backward}) {
      Tensor& begins = of == &row.forward ? of->inputs[3] : of->inputs[6];
      for (int64_t i = 0; i < kLength; ++i) begins.set(i, static_cast<double>(begin_of(i)));
    }
  };
  const auto run = [&] {
    auto all = run_case(row.forward, {.backend = cpu.get()});
    take_results(row, all);
    for (Tensor& one : run_case(row.backward, {.backend = cpu.get()}))
      all.push_back(std::move(one));
    return all;
  };
  const auto expect_same = [&](const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
    for (size_t k = 0; k < a.size(); ++k) EXPECT_TRUE(same_bits(a[k], b[k])) << k;
  };
  set([](int64_t) { return 0; });
  const auto whole = run();
  set([](int64_t i) { return std::numeric_limits<int32_t>::min() + i; });
  expect_same(run(), whole);
  set([](int64_t i) { return i; });
  const auto alone = run();
  set([](int64_t i) { return std::numeric_limits<int32_t>::max() - i; });
  expect_same(run(), alone);
  for (int64_t i = 0; i < kLength * row.g.heads * row.g.size; ++i) {
    ASSERT_NEAR(alone[2].get(i), 0, 1e-5) << "a query that sees itself alone has no choice";
  }
}

}  // namespace
}  // namespace thimble
