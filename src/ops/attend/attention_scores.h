// The plain arithmetic of attention, a query and a key at a time, in double.
#pragma once

#include <algorithm>
#include <cmath>

#include "ops/attend/attention_geometry.h"
#include "ops/pointwise/dropout_mask.h"

namespace thimble {

template <class T>
class AttentionScores {
 public:
  AttentionScores(const AttentionGeometry& geometry, const KernelArgs& args,
                  std::span<const TensorRef> extras)
      : g(geometry), parts(g, args.inputs), extras_(g, extras) {}

  // A query sees keys [first, visible).
  int64_t first(int64_t n, int64_t i) const { return extras_.first(g, n, i); }
  int64_t visible(int64_t n, int64_t i) const { return g.visible(i, extras_.length(g, n)); }

  // Before softmax.
  double score(int64_t n, int64_t head, int64_t i, int64_t j) const {
    return g.scale * dot(parts.q + g.query_at(n, i, head), parts.k + g.key_at(n, j, head));
  }
  // The factor of a probability: 1 without dropout.
  double kept(int64_t n, int64_t head, int64_t i, int64_t j) const {
    if (g.drop == 0) return 1;
    const DropoutMask mask(extras_.rng, g.stream, g.drop);
    const int64_t element = g.random_element(n, i, head) + j;
    const uint32_t word = mask.words(element / 4)[static_cast<size_t>(element % 4)];
    return mask.keeps(word) ? 1 / (1 - g.drop) : 0;
  }
  double dot(const T* a, const T* b) const {
    double sum = 0;
    for (int64_t d = 0; d < g.size; ++d)
      sum += static_cast<double>(a[d]) * static_cast<double>(b[d]);
    return sum;
  }

  const AttentionGeometry g;
  const AttentionParts<const T> parts;

 private:
  const AttentionExtras extras_;
};

struct AttentionCase {
  int64_t rows, queries, keys, heads, groups, size;
  bool causal, padded, packed;
  double dropout;
  bool documents = false;

  Attrs attrs() const {
    Attrs result = {{"heads", heads},
                    {"groups", groups},
                    {"causal", int64_t{causal}},
                    {"padded", int64_t{padded}},
                    {"packed", int64_t{packed}},
                    {"documents", int64_t{documents}},
                    {"dropout", dropout},
                    {"stream", int64_t{9}}};
    if (size == 4) result.set("scale", 0.7);
    return result;
  }
  // q, k and v.
  std::vector<TensorType> sources() const {
    if (packed) return {{{rows, queries, (heads + 2 * groups) * size}}};
    const Shape there = {rows, keys, groups * size};
    return {{{rows, queries, heads * size}}, {there}, {there}};
  }
  void add_extras(Sample& sample) const {
    sample.fills.resize(sample.inputs.size());
    if (padded) {
      sample.inputs.push_back({{rows}, DType::i32});
      sample.fills.push_back({Fill::Kind::labels, 0, static_cast<double>(keys + 1)});
    }
    if (documents) {  // anywhere, behind the query and outside of the row, too
      sample.inputs.push_back({{rows, queries}, DType::i32});
      sample.fills.push_back({Fill::Kind::labels, -2, static_cast<double>(keys + 2)});
    }
    if (dropout > 0) {
      sample.inputs.push_back({{3}, DType::i64});
      sample.fills.push_back({Fill::Kind::labels, 0, 1000});
    }
  }
};

// The cases that both ops are checked on: each setting alone, and together; sizes that tensor cores
// know, and that fill no tile.
inline constexpr AttentionCase kAttentionCases[] = {
    {2, 3, 5, 2, 2, 4, false, false, false, 0},
    {2, 6, 6, 2, 2, 4, true, false, false, 0},
    {3, 4, 7, 4, 2, 6, false, true, false, 0},
    {2, 3, 6, 2, 1, 5, true, true, false, 0.3},
    {2, 7, 7, 2, 2, 4, true, false, true, 0},
    {2, 5, 5, 4, 2, 3, true, true, true, 0.25},
    {1, 70, 70, 2, 1, 64, true, false, true, 0},
    {2, 9, 130, 2, 2, 64, false, true, false, 0.1},
    {1, 33, 97, 2, 2, 32, true, false, false, 0},
    {1, 20, 20, 1, 1, 128, false, false, true, 0.2},
    {2, 7, 7, 2, 1, 4, true, false, false, 0, true},
    {2, 6, 6, 2, 2, 3, true, false, true, 0.25, true},
    {1, 70, 70, 2, 1, 64, true, false, false, 0, true},
};

}  // namespace thimble
