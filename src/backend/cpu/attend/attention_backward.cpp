// attention_backward: a key head of one row of the batch is the work of one thread, tile by tile,
// so that sums over queries have one order. The gradients of keys and values grow in f32, where they
// belong or, of 16-bit tensors, in the workspace.
#include "backend/cpu/attend/attention_tiles.h"

namespace thimble {
namespace {

class AttentionBackward final : public TiledAttention {
 public:
  AttentionBackward(const Signature& s, const AttentionGeometry& g)
      : TiledAttention(s, g, g.rows * g.groups, g.heads / g.groups * g.queries * g.keys * g.size) {
    take_room(sum_floats() + 7 * tile_floats() + 3 * kTile * kTile);
  }

 private:
  // Where the gradients of a key head's keys and values grow.
  struct Sums {
    float *dk, *dv;
    int64_t row;
  };
  struct Rooms {
    float *turned_q, *turned_dy, *dq, *p, *dp, *kept, *q, *dy, *k, *v;
  };

  int64_t tile_floats() const { return kTile * g_.size; }
  int64_t sum_floats() const { return staged_ ? 2 * g_.keys * g_.size : 0; }
  Rooms rooms_in(float* room) const {
    float* const square = room + 7 * tile_floats();
    const auto tile = [&](int64_t i) { return room + i * tile_floats(); };
    return {tile(0), tile(1), tile(2), square, square + kTile * kTile, square + 2 * kTile * kTile,
            tile(3), tile(4), tile(5), tile(6)};
  }

  void run_unit(const KernelArgs& args, int64_t unit, float* room) const override {
    const int64_t n = unit / g_.groups, group = unit % g_.groups;
    const AttentionTensors to(g_, args.outputs);
    const int64_t shared = g_.heads / g_.groups;
    const int64_t first = g_.key_at(n, 0, group * shared);
    Sums sums = {room, room + g_.keys * g_.size, g_.size};
    if (!staged_) {
      sums = {to.k.as<float>() + to.first_k + first, to.v.as<float>() + to.first_v + first,
              g_.key_step};
    }
    for (int64_t j = 0; j < g_.keys; ++j) {
      std::fill_n(sums.dk + j * sums.row, g_.size, 0.0f);
      std::fill_n(sums.dv + j * sums.row, g_.size, 0.0f);
    }
    for (int64_t head = group * shared; head < (group + 1) * shared; ++head) {
      for (int64_t query = 0; query < g_.queries; query += kTile) {
        run_queries(args, n, head, query, sums, rooms_in(room + sum_floats()));
      }
    }
    if (!staged_) return;
    store_rows(sums.dk, g_.keys, g_.size, to.k, to.first_k + first, g_.key_step);
    store_rows(sums.dv, g_.keys, g_.size, to.v, to.first_v + first, g_.key_step);
  }

  void run_queries(const KernelArgs& args, int64_t n, int64_t head, int64_t query, const Sums& sums,
                   const Rooms& r) const {
    const AttentionTensors from(g_, args.inputs);
    const auto rest = args.inputs.subspan(g_.sources());
    const AttentionExtras extras(g_, rest.subspan(3));
    const int64_t size = g_.size, length = extras.length(g_, n);
    const int64_t queries = std::min(kTile, g_.queries - query);
    const int64_t result = g_.result_at(n, query, head), step = g_.heads * size;
    // y passes through the room of k.
    const FloatRows y = float_rows(rest[0], result, queries, step, size, r.k);
    const FloatRows dy = float_rows(rest[2], result, queries, step, size, r.dy);
    float delta[kTile] = {}, lse[kTile] = {};
    for (int64_t i = 0; i < queries; ++i) {
      for (int64_t d = 0; d < size; ++d) delta[i] += dy.at[i * dy.row + d] * y.at[i * y.row + d];
      lse[i] = rest[1].as<const float>()[g_.lse_at(n, query + i, head)];
    }
    const FloatRows q =
        float_rows(from.q, g_.query_at(n, query, head), queries, g_.query_step, size, r.q);
    const auto scale = static_cast<float>(g_.scale);
    turn_rows(q.at, q.row, queries, size, scale, r.turned_q);
    turn_rows(dy.at, dy.row, queries, size, 1, r.turned_dy);
    std::fill_n(r.dq, queries * size, 0.0f);
    const int64_t last = g_.visible(query + queries - 1, length);
    for (int64_t key = 0; key < last; key += kTile) {
      const ScoreTile tile = score_tile(g_, length, query, queries, key);
      const int64_t at = g_.key_at(n, key, head);
      const FloatRows k = float_rows(from.k, from.first_k + at, tile.keys, g_.key_step, size, r.k);
      const FloatRows v = float_rows(from.v, from.first_v + at, tile.keys, g_.key_step, size, r.v);
      std::fill_n(r.p, tile.keys * kTile, 0.0f);
      std::fill_n(r.dp, tile.keys * kTile, 0.0f);
      add_product(tile.keys, kTile, size, {k.at, k.row, 1}, r.turned_q, kTile, r.p, kTile);
      add_product(tile.keys, kTile, size, {v.at, v.row, 1}, r.turned_dy, kTile, r.dp, kTile);
      probabilities(tile, r.p, lse);
      if (g_.drop > 0) draw_kept(g_, extras.rng, n, head, query, tile, r.kept);
      score_gradients(tile.keys, scale, delta, g_.drop > 0 ? r.kept : nullptr, r.p, r.dp);
      add_product(tile.keys, size, queries, {r.p, kTile, 1}, dy.at, dy.row,
                  sums.dv + key * sums.row, sums.row);
      add_product(tile.keys, size, queries, {r.dp, kTile, 1}, q.at, q.row, sums.dk + key * sums.row,
                  sums.row);
      add_product(queries, size, tile.keys, {r.dp, 1, kTile}, k.at, k.row, r.dq, size);
    }
    store_rows(r.dq, queries, size, args.outputs[0], g_.query_at(n, query, head), g_.query_step);
  }
};

}  // namespace

extern const CpuKernel cpu_attention_backward{"attention_backward",
                                              make_attention<AttentionBackward>};

}  // namespace thimble
