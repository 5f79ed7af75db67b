// The shapes of attention and its gradient.
//
//   q [N,Tq,H*D]   k, v [N,Tk,G*D]   y like q   lse [N,H,Tq]
//   packed: one tensor [N,T,(H+2G)*D], in which q, k and v of a position lie one behind the other
//
// Query head h reads key head h / (H/G). Query i sees keys [0, visible): all that are not padding
// and, when causal, none behind its own place; queries are the last of the keys' positions.
//
// documents: a row holds several, one behind the other, and `begins` says for each token where its
// document begins. Query i sees keys [begins[i], i], so nothing of another document. Whatever
// numbers `begins` has, a query sees itself at least, and no key that is not there.
//
// continued: k and v are a KV cache. An extra input says at which of its positions the queries of
// each row begin, which are causal: query i sees keys [0, first + i].
#pragma once

#include "base/number/random_stream.h"
#include "ops/checks.h"
#include "ops/reference.h"

namespace thimble {

struct AttentionGeometry {
  int64_t rows, queries, keys, heads, groups, size;
  int64_t query_step, key_step;  // elements from one position to the next
  double scale, drop;
  int64_t stream;
  bool causal, padded, packed, documents, continued;

  // How many of the inputs are q, k and v.
  constexpr size_t sources() const { return packed ? 1 : 3; }
  constexpr int64_t query_at(int64_t n, int64_t i, int64_t head) const {
    return (n * queries + i) * query_step + head * size;
  }
  // Of the key head that query head `head` reads.
  constexpr int64_t key_at(int64_t n, int64_t j, int64_t head) const {
    return (n * keys + j) * key_step + head / (heads / groups) * size;
  }
  constexpr int64_t result_at(int64_t n, int64_t i, int64_t head) const {
    return ((n * queries + i) * heads + head) * size;
  }
  constexpr int64_t lse_at(int64_t n, int64_t i, int64_t head) const {
    return (n * heads + head) * queries + i;
  }
  // Keys that query i sees, of `length` that are not padding; continued: the queries are the last of
  // `length` positions, which may be more than there are keys.
  constexpr int64_t visible(int64_t i, int64_t length) const {
    if (continued) {
      const int64_t own = i + length - queries + 1;
      return own < 0 ? 0 : own < keys ? own : keys;
    }
    const int64_t present = length < 0 ? 0 : length < keys ? length : keys;
    const int64_t before = i + keys - queries + 1;
    return causal && before < present ? before : present;
  }
  // The first key that query i sees, whose document begins at `begin`.
  constexpr int64_t first_seen(int64_t i, int64_t begin) const {
    return begin < 0 ? 0 : begin < i ? begin : i;
  }
  // Of row n, by the extra input; null: there is none.
  constexpr int64_t length(const int32_t* given, int64_t n) const {
    if (given == nullptr) return keys;
    return continued ? given[n] + queries : given[n];
  }
  // Of the random word that decides whether a key is dropped for a query. Rows of words begin at a
  // multiple of four, so that four neighbours share a draw.
  constexpr int64_t random_element(int64_t n, int64_t i, int64_t head) const {
    return lse_at(n, i, head) * ((keys + 3) / 4 * 4);
  }
  TensorType result(DType dtype) const { return {{rows, queries, heads * size}, dtype}; }
  TensorType lse(DType dtype) const { return {{rows, heads, queries}, statistics_dtype(dtype)}; }
  // Products of one pass over the scores, with the part that is never seen left out; of documents,
  // as if a row were one: where they begin is known only when it runs.
  double flops() const {
    const double all = 2.0 * static_cast<double>(rows * heads * size) *
                       static_cast<double>(queries) * static_cast<double>(keys);
    const double seen = static_cast<double>(2 * keys - queries + 1) / 2;
    return causal && !continued ? all * seen / static_cast<double>(keys) : all;
  }
};

// Reads attrs heads, groups (heads), causal, scale (1/sqrt(D)), padded, dropout, stream, packed,
// documents.
// The first inputs are q, k and v, or all of them in one. Throws UserError naming `op`.
inline AttentionGeometry attention_geometry(std::string_view op, std::span<const TensorType> inputs,
                                            const Attrs& attrs) {
  AttentionGeometry g{};
  g.heads = attrs.integer("heads");
  g.groups = attrs.integer("groups", g.heads);
  g.causal = attrs.integer("causal", 0) != 0;
  g.padded = attrs.integer("padded", 0) != 0;
  g.packed = attrs.integer("packed", 0) != 0;
  g.documents = attrs.integer("documents", 0) != 0;
  g.continued = attrs.integer("continued", 0) != 0;
  g.drop = attrs.real("dropout", 0);
  g.stream = attrs.integer("stream", 0);
  if (g.heads < 1 || g.groups < 1 || g.heads % g.groups != 0) {
    user_error("[{}] {} heads do not go into {} groups", op, g.heads, g.groups);
  }
  if (g.drop < 0 || g.drop >= 1) user_error("[{}] dropout lies in [0, 1), got {}", op, g.drop);
  const TensorType& q = inputs[0];
  check_floating_rank(op, "activations [N,T,C]", q, 3);
  const int64_t shares = g.packed ? g.heads + 2 * g.groups : g.heads;
  if (q.shape[2] % shares != 0 || q.shape[2] == 0) {
    user_error("[{}] {} channels do not make {} heads", op, q.shape[2], shares);
  }
  g.size = q.shape[2] / shares;
  g.rows = q.shape[0];
  g.queries = q.shape[1];
  g.query_step = q.shape[2];
  g.keys = g.packed ? g.queries : inputs[1].shape.rank() == 3 ? inputs[1].shape[1] : 0;
  g.key_step = g.packed ? g.query_step : g.groups * g.size;
  if (!g.packed) {
    const TensorType wanted = {{g.rows, g.keys, g.key_step}, q.dtype};
    check_type(op, "keys", inputs[1], wanted);
    check_type(op, "values", inputs[2], wanted);
  }
  if (g.continued && (g.padded || g.packed || g.documents || !g.causal)) {
    user_error("[{}] queries over a cache are causal, and neither packed, padded nor of documents",
               op);
  }
  if (g.causal && g.keys < g.queries) {
    user_error("[{}] {} queries that see no later keys want as many keys, got {}", op, g.queries,
               g.keys);
  }
  if (g.documents && (!g.causal || g.padded || g.queries != g.keys)) {
    user_error(
        "[{}] documents in a row are read causally, with a key for every query and no other "
        "padding, got causal {}, {} queries, {} keys and padded {}",
        op, g.causal, g.queries, g.keys, g.padded);
  }
  g.scale = attrs.real("scale", 1 / std::sqrt(static_cast<double>(g.size)));
  return g;
}

// The inputs behind those that every attention has: (lengths i32 [N]) or (first positions i32 [N]),
// (begins i32 [N,T]), (rng i64 [3]).
inline void check_attention_extras(std::string_view op, std::span<const TensorType> extras,
                                   const AttentionGeometry& g) {
  const size_t wanted = size_t{g.padded || g.continued} + size_t{g.documents} + size_t{g.drop > 0};
  if (extras.size() != wanted) {
    user_error("[{}] takes {} inputs for its padding, documents and dropout, got {}", op, wanted,
               extras.size());
  }
  if (g.padded) check_type(op, "lengths", extras[0], {{g.rows}, DType::i32});
  if (g.documents) check_type(op, "begins", extras[0], {{g.rows, g.queries}, DType::i32});
  if (g.continued) check_type(op, "first positions", extras[0], {{g.rows}, DType::i32});
  if (g.drop == 0) return;
  check_type(op, "rng", extras.back(), {{3}, DType::i64});
  if (g.random_element(g.rows - 1, g.queries, g.heads - 1) > kMaxRandomElements) {
    user_error("[{}] {} by {} scores have too many elements for dropout", op, g.queries, g.keys);
  }
}

// Where q, k and v are among the tensors of a call, or their gradients.
template <class T>
struct AttentionParts {
  T *q, *k, *v;

  AttentionParts(const AttentionGeometry& g, std::span<const TensorRef> tensors)
      : q(tensors[0].as<T>()),
        k(g.packed ? q + g.heads * g.size : tensors[1].as<T>()),
        v(g.packed ? k + g.groups * g.size : tensors[2].as<T>()) {}
};

// The inputs of a call that need not be there; null without.
struct AttentionExtras {
  const int32_t* lengths = nullptr;  // or first positions
  const int32_t* begins = nullptr;
  const int64_t* rng = nullptr;

  AttentionExtras(const AttentionGeometry& g, std::span<const TensorRef> extras) {
    if (g.padded || g.continued) lengths = extras[0].as<const int32_t>();
    if (g.documents) begins = extras[0].as<const int32_t>();
    if (g.drop > 0) rng = extras.back().as<const int64_t>();
  }
  int64_t length(const AttentionGeometry& g, int64_t n) const { return g.length(lengths, n); }
  // The first key that query i sees.
  int64_t first(const AttentionGeometry& g, int64_t n, int64_t i) const {
    return begins == nullptr ? 0 : g.first_seen(i, begins[n * g.queries + i]);
  }
};

}  // namespace thimble
