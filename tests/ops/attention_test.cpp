#include <cmath>
#include <limits>

#include "base/error.h"
#include "ops/pointwise/dropout_mask.h"
#include "reference_call.h"

namespace thimble {
namespace {

TestTensor tensor(Shape shape, std::vector<double> values) {
  return {{shape, DType::f64}, std::move(values)};
}
TestTensor numbers(Shape shape, DType dtype, std::vector<double> values) {
  return {{shape, dtype}, std::move(values)};
}

// Different numbers between -1 and 1, the same for the same seed.
TestTensor some(Shape shape, int seed) {
  std::vector<double> values;
  for (int64_t i = 0; i < shape.elements(); ++i) {
    values.push_back(std::sin(1.7 * static_cast<double>(i) + seed));
  }
  return tensor(shape, std::move(values));
}

// Scores 0 and ln 3 are shares of 1/4 and 3/4; the first query sees the first key alone.
TEST(Attention, WeighsValuesByTheSoftmaxOfScores) {
  const TestTensor q = tensor({1, 2, 1}, {std::log(3), std::log(3)});
  const TestTensor k = tensor({1, 2, 1}, {0, 1}), v = tensor({1, 2, 1}, {1, 5});
  const auto all = reference_call("attention", {q, k, v}, {{"heads", int64_t{1}}});
  expect_near(all[0], {4, 4}, kExact);
  expect_near(all[1], {std::log(4), std::log(4)}, kExact);
  const auto causal =
      reference_call("attention", {q, k, v}, {{"heads", int64_t{1}}, {"causal", int64_t{1}}});
  expect_near(causal[0], {1, 4}, kExact);
  expect_near(causal[1], {0, std::log(4)}, kExact);
}

// Fewer queries than keys are the last of them.
TEST(Attention, CausalQueriesStandAtTheEnd) {
  const TestTensor q = tensor({1, 1, 1}, {0});
  const TestTensor k = tensor({1, 3, 1}, {0, 0, 0}), v = tensor({1, 3, 1}, {3, 6, 9});
  const Attrs causal = {{"heads", int64_t{1}}, {"causal", int64_t{1}}};
  expect_near(reference_call("attention", {q, k, v}, causal)[0], {6}, kExact);
}

TEST(Attention, ScalesByTheSizeOfAHeadOrAsAsked) {
  const TestTensor q = tensor({1, 1, 4}, {2, 0, 0, 0}), k = tensor({1, 2, 4}, {0, 0, 0, 0,  //
                                                                               1, 0, 0, 0});
  const TestTensor v = tensor({1, 2, 4}, {0, 0, 0, 0, 1, 1, 1, 1});
  const double share = 1 / (1 + std::exp(-1.0));  // a score of 2 / sqrt(4)
  expect_near(reference_call("attention", {q, k, v}, {{"heads", int64_t{1}}})[0],
              {share, share, share, share}, kExact);
  const double other = 1 / (1 + std::exp(-6.0));
  expect_near(reference_call("attention", {q, k, v}, {{"heads", int64_t{1}}, {"scale", 3.0}})[0],
              {other, other, other, other}, kExact);
}

TEST(Attention, WhatIsPaddingIsNotSeen) {
  const Attrs attrs = {{"heads", int64_t{2}}, {"padded", int64_t{1}}};
  const TestTensor q = some({3, 2, 4}, 1), k = some({3, 3, 4}, 2), v = some({3, 3, 4}, 3);
  const TestTensor lengths = numbers({3}, DType::i32, {2, 3, 0});
  const auto first = reference_call("attention", {q, k, v, lengths}, attrs);
  TestTensor other_k = k, other_v = v;
  for (int c = 8; c < 12; ++c) other_k.values[c] = other_v.values[c] = 77;  // row 0, the third key
  EXPECT_EQ(reference_call("attention", {q, other_k, other_v, lengths}, attrs), first);
  for (size_t c = 16; c < 24; ++c) EXPECT_EQ(first[0][c], 0) << "a row without keys";
  EXPECT_EQ(first[1].back(), -std::numeric_limits<double>::infinity());
  const auto d = reference_call("attention_backward",
                                {q, k, v, tensor({3, 2, 4}, first[0]), tensor({3, 2, 2}, first[1]),
                                 some({3, 2, 4}, 5), lengths},
                                attrs);
  for (size_t c = 8; c < 12; ++c) EXPECT_EQ(d[1][c], 0) << "the gradient of padding";
  for (size_t c = 24; c < 36; ++c) EXPECT_EQ(d[2][c], 0) << "the gradient of padding";
}

// One tensor in which q, k and v of a position follow each other says the same.
TEST(Attention, PackedIsTheSame) {
  const int64_t length = 5, heads = 4, groups = 2, size = 3;
  const TestTensor q = some({2, length, heads * size}, 1);
  const TestTensor k = some({2, length, groups * size}, 2), v = some({2, length, groups * size}, 3);
  TestTensor packed = tensor({2, length, (heads + 2 * groups) * size}, {});
  for (int64_t row = 0; row < 2 * length; ++row) {
    for (const auto* part : {&q, &k, &v}) {
      const int64_t width = part->type.shape[2];
      packed.values.insert(packed.values.end(), part->values.begin() + row * width,
                           part->values.begin() + (row + 1) * width);
    }
  }
  Attrs attrs = {{"heads", heads}, {"groups", groups}, {"causal", int64_t{1}}};
  const auto apart = reference_call("attention", {q, k, v}, attrs);
  attrs.set("packed", int64_t{1});
  EXPECT_EQ(reference_call("attention", {packed}, attrs), apart);
}

// Of three documents in a row, each has the results and the gradients that it has alone.
TEST(Attention, DocumentsInARowDoNotSeeEachOther) {
  const int64_t lengths[] = {3, 1, 4}, length = 8, width = 4, shared = 2;
  const Attrs attrs = {
      {"heads", int64_t{2}}, {"groups", int64_t{1}}, {"causal", int64_t{1}}, {"scale", 0.9}};
  Attrs packed = attrs;
  packed.set("documents", int64_t{1});
  const TestTensor q = some({1, length, width}, 1), dy = some({1, length, width}, 4);
  const TestTensor k = some({1, length, shared}, 2), v = some({1, length, shared}, 3);
  const TestTensor begins = numbers({1, length}, DType::i32, {0, 0, 0, 3, 4, 4, 4, 4});
  const auto all = reference_call("attention", {q, k, v, begins}, packed);
  const auto gradients = reference_call(
      "attention_backward",
      {q, k, v, tensor({1, length, width}, all[0]), tensor({1, 2, length}, all[1]), dy, begins},
      packed);
  int64_t at = 0;
  for (const int64_t part : lengths) {
    const auto cut = [&](const std::vector<double>& from, int64_t step) {
      return std::vector<double>(from.begin() + at * step, from.begin() + (at + part) * step);
    };
    const auto cut_tensor = [&](const TestTensor& from) {
      const int64_t step = from.type.shape[2];
      return tensor({1, part, step}, cut(from.values, step));
    };
    const TestTensor own_q = cut_tensor(q), own_k = cut_tensor(k), own_v = cut_tensor(v);
    const auto alone = reference_call("attention", {own_q, own_k, own_v}, attrs);
    EXPECT_EQ(cut(all[0], width), alone[0]);
    const auto own = reference_call("attention_backward",
                                    {own_q, own_k, own_v, tensor({1, part, width}, alone[0]),
                                     tensor({1, 2, part}, alone[1]), cut_tensor(dy)},
                                    attrs);
    for (size_t i = 0; i < 3; ++i) EXPECT_EQ(cut(gradients[i], i == 0 ? width : shared), own[i]);
    at += part;
  }
}

// Against all scores at once: softmax, mask, product, per head.
TEST(Attention, DropsProbabilitiesBehindTheSoftmax) {
  const int64_t queries = 5, keys = 6, size = 3;
  const double p = 0.4;
  const TestTensor q = some({1, queries, 2 * size}, 1), k = some({1, keys, 2 * size}, 2);
  const TestTensor v = some({1, keys, 2 * size}, 3);
  const TestTensor rng = numbers({3}, DType::i64, {7, 3, 1});
  const auto out = reference_call(
      "attention", {q, k, v, rng},
      {{"heads", int64_t{2}}, {"dropout", p}, {"stream", int64_t{5}}, {"scale", 1.0}});
  const int64_t key[] = {7, 3, 1};
  const DropoutMask mask(key, 5, p);
  int dropped = 0;
  for (int64_t head = 0; head < 2; ++head) {
    for (int64_t i = 0; i < queries; ++i) {
      std::vector<double> score(keys);
      double sum = 0;
      for (int64_t j = 0; j < keys; ++j) {
        double product = 0;
        for (int64_t d = 0; d < size; ++d) {
          product +=
              q.values[i * 2 * size + head * size + d] * k.values[j * 2 * size + head * size + d];
        }
        sum += score[j] = std::exp(product);
      }
      for (int64_t d = 0; d < size; ++d) {
        double result = 0;
        for (int64_t j = 0; j < keys; ++j) {
          const int64_t element = (head * queries + i) * 8 + j;  // rows of words are 8 apart
          const bool kept = mask.keeps(mask.words(element / 4)[element % 4]);
          dropped += kept ? 0 : 1;
          if (kept) {
            result += score[j] / sum / (1 - p) * v.values[j * 2 * size + head * size + d];
          }
        }
        EXPECT_NEAR(out[0][i * 2 * size + head * size + d], result, kExact);
      }
    }
  }
  EXPECT_GT(dropped, 0);
}

TEST(Attention, RefusesWhatDoesNotFit) {
  const auto types = [](Shape q, Shape k) { return std::vector<TensorType>{{q}, {k}, {k}}; };
  const OpDef& op = *find_op("attention");
  EXPECT_THROW(op.infer(types({2, 3, 8}, {2, 3, 8}), {{"heads", int64_t{3}}}), UserError);
  EXPECT_THROW(op.infer(types({2, 3, 8}, {1, 3, 8}), {{"heads", int64_t{2}}}), UserError);
  EXPECT_THROW(
      op.infer(types({2, 4, 8}, {2, 3, 8}), {{"heads", int64_t{2}}, {"causal", int64_t{1}}}),
      UserError);
  EXPECT_THROW(op.infer(types({2, 3, 8}, {2, 3, 8}), {{"heads", int64_t{2}}, {"dropout", 0.1}}),
               UserError);
  // Documents: causal, a key for every query, and where they begin.
  const TensorType begins = {{2, 3}, DType::i32}, short_begins = {{2, 2}, DType::i32};
  const auto with = [&](Shape q, Shape k, const TensorType& last) {
    std::vector<TensorType> all = types(q, k);
    all.push_back(last);
    return all;
  };
  Attrs attrs = {{"heads", int64_t{2}}, {"documents", int64_t{1}}};
  EXPECT_THROW(op.infer(with({2, 3, 8}, {2, 3, 8}, begins), attrs), UserError);
  attrs.set("causal", int64_t{1});
  EXPECT_NO_THROW(op.infer(with({2, 3, 8}, {2, 3, 8}, begins), attrs));
  EXPECT_THROW(op.infer(types({2, 3, 8}, {2, 3, 8}), attrs), UserError);
  EXPECT_THROW(op.infer(with({2, 3, 8}, {2, 3, 8}, short_begins), attrs), UserError);
  EXPECT_THROW(op.infer(with({2, 3, 8}, {2, 4, 8}, begins), attrs), UserError);
  attrs.set("padded", int64_t{1});
  EXPECT_THROW(op.infer(with({2, 3, 8}, {2, 3, 8}, begins), attrs), UserError);
}

// Two channels of position 1 turn by one radian, of position 2 by two.
TEST(Rotary, TurnsByThePosition) {
  const TestTensor x = tensor({1, 3, 2}, {1, 0, 1, 0, 0, 1});
  const Attrs attrs = {{"heads", int64_t{1}}};
  const auto y = reference_call("rotary", {x}, attrs)[0];
  expect_near(y, {1, 0, std::cos(1), std::sin(1), -std::sin(2), std::cos(2)}, kExact);
  Attrs back = attrs;
  back.set("inverse", int64_t{1});
  expect_near(reference_call("rotary", {tensor({1, 3, 2}, y)}, back)[0], x.values, kExact);
  Attrs later = attrs;
  later.set("offset", int64_t{1});
  expect_near(reference_call("rotary", {tensor({1, 1, 2}, {1, 0})}, later)[0],
              {std::cos(1), std::sin(1)}, kExact);
}

// The second pair of a head of four turns base^(-1/2) as fast; heads behind `rotated` pass.
TEST(Rotary, PairsAreHalfAHeadApart) {
  const auto y = reference_call(
      "rotary", {tensor({1, 2, 8}, {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 5, 6, 7, 8})},
      {{"heads", int64_t{2}}, {"rotated", int64_t{1}}, {"base", 100.0}})[0];
  expect_near({y.begin() + 8, y.end()},
              {std::cos(1), std::cos(0.1), std::sin(1), std::sin(0.1), 5, 6, 7, 8}, kExact);
}

}  // namespace
}  // namespace thimble
