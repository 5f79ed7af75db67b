// attention: tiles of queries, each over all tiles of keys that it sees, with a softmax that
// streams. A single query, as a token makes it over a KV cache, fills no tile: its scores are a row.
#include <cmath>
#include <limits>

#include "backend/cpu/attend/attention_tiles.h"

namespace thimble {
namespace {

class Attention final : public TiledAttention {
 public:
  Attention(const Signature& s, const AttentionGeometry& g)
      : TiledAttention(s, g, g.rows * g.heads * tiles_of(g), kTile * g.keys * g.size) {
    // Queries turned, results, scores, what is kept of them, and rows that are widened.
    take_room((staged_ ? 3 : 2) * kTile * g.size + 2 * kTile * kTile);
  }

 private:
  static int64_t tiles_of(const AttentionGeometry& g) { return (g.queries + kTile - 1) / kTile; }

  void run_unit(const KernelArgs& args, int64_t unit, float* room) const override {
    const int64_t tiles = tiles_of(g_);
    attend(args, unit / tiles / g_.heads, unit / tiles % g_.heads, unit % tiles * kTile, room);
  }

  void attend(const KernelArgs& args, int64_t n, int64_t head, int64_t query, float* room) const {
    const AttentionTensors from(g_, args.inputs);
    const AttentionExtras extras(g_, args.inputs.subspan(g_.sources()));
    const int64_t queries = std::min(kTile, g_.queries - query), length = extras.length(g_, n);
    float* const turned = room;
    float* const y = turned + kTile * g_.size;
    float* const scores = y + kTile * g_.size;
    float* const kept = scores + kTile * kTile;
    float* const widened = kept + kTile * kTile;
    const FloatRows q =
        float_rows(from.q, g_.query_at(n, query, head), queries, g_.query_step, g_.size, widened);
    turn_rows(q.at, q.row, queries, g_.size, static_cast<float>(g_.scale), turned);
    std::fill_n(y, kTile * g_.size, 0.0f);
    float largest[kTile], sum[kTile] = {}, fade[kTile];
    std::fill_n(largest, kTile, -std::numeric_limits<float>::infinity());
    const int64_t last = g_.visible(query + queries - 1, length);
    for (int64_t key = first_tile(g_, extras, n, query, queries); key < last; key += kTile) {
      const ScoreTile tile = score_tile(g_, extras, n, query, queries, key);
      const int64_t at = g_.key_at(n, key, head);
      const FloatRows k =
          float_rows(from.k, from.first_k + at, tile.keys, g_.key_step, g_.size, widened);
      std::fill_n(scores, tile.keys * kTile, 0.0f);
      add_product(tile.keys, kTile, g_.size, {k.at, k.row, 1}, turned, kTile, scores, kTile);
      stream_softmax(tile, scores, largest, sum, fade);
      scale_rows(queries, g_.size, fade, y);
      if (g_.drop > 0) {
        draw_kept(g_, extras.rng, n, head, query, tile, kept);
        multiply_all(tile.keys * kTile, kept, scores);
      }
      const FloatRows v =
          float_rows(from.v, from.first_v + at, tile.keys, g_.key_step, g_.size, widened);
      add_product(queries, g_.size, tile.keys, {scores, 1, kTile}, v.at, v.row, y, g_.size);
    }
    for (int64_t i = 0; i < queries; ++i) {
      args.outputs[1].as<float>()[g_.lse_at(n, query + i, head)] = largest[i] + std::log(sum[i]);
      sum[i] = sum[i] == 0 ? 0 : 1 / sum[i];
    }
    scale_rows(queries, g_.size, sum, y);
    store_rows(y, queries, g_.size, args.outputs[0], g_.result_at(n, query, head),
               g_.heads * g_.size);
  }
};

class AttentionOfOne final : public TiledAttention {
 public:
  AttentionOfOne(const Signature& s, const AttentionGeometry& g)
      : TiledAttention(s, g, g.rows * g.heads, 4 * g.keys * g.size) {
    // The query, its result, its scores, and rows that are widened.
    take_room(2 * g.size + g.keys + (staged_ ? kTile * g.size : 0));
  }

 private:
  void run_unit(const KernelArgs& args, int64_t unit, float* room) const override {
    const int64_t n = unit / g_.heads, head = unit % g_.heads, size = g_.size;
    const AttentionTensors from(g_, args.inputs);
    const AttentionExtras extras(g_, args.inputs.subspan(g_.sources()));
    float *const query = room, *const y = query + size, *const scores = y + size;
    float* const widened = scores + g_.keys;
    const FloatRows q = float_rows(from.q, g_.query_at(n, 0, head), 1, size, size, query);
    turn_row(q.at, query);
    std::fill_n(y, size, 0.0f);
    const int64_t visible = g_.visible(0, extras.length(g_, n));
    const auto for_each_tile = [&](const TensorRef& tensor, int64_t first, const auto& body) {
      for (int64_t key = 0; key < visible; key += kTile) {
        const int64_t keys = std::min(kTile, visible - key);
        const FloatRows rows =
            float_rows(tensor, first + g_.key_at(n, key, head), keys, g_.key_step, size, widened);
        body(key, keys, rows);
      }
    };
    for_each_tile(from.k, from.first_k, [&](int64_t key, int64_t keys, const FloatRows& k) {
      row_products(keys, size, {k.at, k.row, 1}, {query, 0, 1}, scores + key);
    });
    float lse = -std::numeric_limits<float>::infinity(), share = 0;
    if (visible > 0) {
      const RowSoftmax softmax = row_softmax(visible, scores);
      lse = softmax.largest + std::log(softmax.sum);
      share = 1 / softmax.sum;
    }
    for_each_tile(from.v, from.first_v, [&](int64_t key, int64_t keys, const FloatRows& v) {
      add_product(1, size, keys, {scores + key, 0, 1}, v.at, v.row, y, size);
    });
    scale_rows(1, size, &share, y);
    args.outputs[1].as<float>()[g_.lse_at(n, 0, head)] = lse;
    store_rows(y, 1, size, args.outputs[0], g_.result_at(n, 0, head), size);
  }

  void turn_row(const float* from, float* to) const {
    const auto scale = static_cast<float>(g_.scale);
    for (int64_t d = 0; d < g_.size; ++d) to[d] = scale * from[d];
  }
};

std::unique_ptr<Kernel> make(const Signature& s) {
  const AttentionGeometry g = attention_geometry("attention", s.inputs, s.attrs);
  const bool one = g.queries == 1 && g.drop == 0 && !g.documents;
  return one ? make_attention<AttentionOfOne>(s) : make_attention<Attention>(s);
}

}  // namespace

extern const CpuKernel cpu_attention{"attention", make};

}  // namespace thimble
