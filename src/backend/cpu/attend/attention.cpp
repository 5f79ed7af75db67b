// attention: tiles of queries, each over all tiles of keys that it sees, with a softmax that
// streams.
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

}  // namespace

extern const CpuKernel cpu_attention{"attention", make_attention<Attention>};

}  // namespace thimble
