// attention_backward: some keys of a key head of one row of the batch are the work of one thread,
// tile by tile, so that sums over queries have one order. The gradients of keys and values grow in
// f32, where they belong or, of 16-bit tensors, in the workspace.
//
// Where there are few key heads, each has its keys in two shares of like work. Gradients of queries
// are then the sum of two, of which the second (of 16-bit tensors, both) waits in the workspace.
#include "backend/cpu/attend/attention_tiles.h"

namespace thimble {
namespace {

constexpr int64_t kFewHeads = 8;       // that fewer threads cannot share evenly
constexpr int64_t kKeysToShare = 256;  // below, tiles are too few

int64_t shares_of(const AttentionGeometry& g) {
  return g.rows * g.groups < kFewHeads && g.keys >= kKeysToShare ? 2 : 1;
}

// The key at which the second share begins.
int64_t middle_of(const AttentionGeometry& g) {
  const auto seen_by = [&](int64_t end) {  // tiles of keys before `end` that queries see
    int64_t tiles = 0;
    for (int64_t query = 0; query < g.queries; query += kTile) {
      const int64_t last = std::min(query + kTile, g.queries) - 1;
      tiles += (std::min(end, g.visible(last, g.keys)) + kTile - 1) / kTile;
    }
    return tiles;
  };
  const int64_t all = seen_by(g.keys);
  int64_t middle = kTile;
  while (middle < g.keys && 2 * seen_by(middle) < all) middle += kTile;
  const int64_t before = middle - kTile;
  const bool nearer = all - 2 * seen_by(before) < 2 * seen_by(middle) - all;
  return nearer ? before : middle;
}

class AttentionBackward final : public TiledAttention {
 public:
  AttentionBackward(const Signature& s, const AttentionGeometry& g)
      : TiledAttention(s, g, g.rows * g.groups * shares_of(g),
                       g.heads / g.groups * g.queries * g.keys * g.size / shares_of(g)),
        shares_(shares_of(g)),
        middle_(shares_ == 2 ? middle_of(g) : g.keys) {
    const int64_t waiting = shares_ == 1 ? 0 : staged_ ? 2 : 1;
    take_room(sum_floats() + 7 * tile_floats() + 3 * kTile * kTile, waiting * query_floats());
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
  struct Keys {
    int64_t begin, end;
  };

  int64_t tile_floats() const { return kTile * g_.size; }
  int64_t sum_floats() const { return staged_ ? 2 * g_.keys * g_.size : 0; }
  int64_t query_floats() const { return g_.rows * g_.queries * g_.heads * g_.size; }
  Rooms rooms_in(float* room) const {
    float* const square = room + 7 * tile_floats();
    const auto tile = [&](int64_t i) { return room + i * tile_floats(); };
    return {tile(0), tile(1), tile(2), square, square + kTile * kTile, square + 2 * kTile * kTile,
            tile(3), tile(4), tile(5), tile(6)};
  }

  void run_unit(const KernelArgs& args, int64_t unit, float* room) const override {
    const int64_t share = unit % shares_, n = unit / shares_ / g_.groups;
    const int64_t group = unit / shares_ % g_.groups;
    const Keys keys = share == 0 ? Keys{0, middle_} : Keys{middle_, g_.keys};
    const AttentionTensors to(g_, args.outputs);
    const int64_t shared = g_.heads / g_.groups;
    const int64_t first = g_.key_at(n, 0, group * shared);
    Sums sums = {room, room + g_.keys * g_.size, g_.size};
    if (!staged_) {
      sums = {to.k.as<float>() + to.first_k + first, to.v.as<float>() + to.first_v + first,
              g_.key_step};
    }
    for (int64_t j = keys.begin; j < keys.end; ++j) {
      std::fill_n(sums.dk + j * sums.row, g_.size, 0.0f);
      std::fill_n(sums.dv + j * sums.row, g_.size, 0.0f);
    }
    for (int64_t head = group * shared; head < (group + 1) * shared; ++head) {
      for (int64_t query = 0; query < g_.queries; query += kTile) {
        const int64_t queries = std::min(kTile, g_.queries - query);
        const Rooms rooms = rooms_in(room + sum_floats());
        std::fill_n(rooms.dq, queries * g_.size, 0.0f);
        run_queries(args, n, head, query, keys, sums, rooms);
        store_gradient(args, share, n, head, query, rooms.dq);
      }
    }
    if (!staged_) return;
    const int64_t count = keys.end - keys.begin, at = keys.begin * g_.size;
    const int64_t place = first + keys.begin * g_.key_step;
    store_rows(sums.dk + at, count, g_.size, to.k, to.first_k + place, g_.key_step);
    store_rows(sums.dv + at, count, g_.size, to.v, to.first_v + place, g_.key_step);
  }

  // Of queries, to where they belong or wait.
  void store_gradient(const KernelArgs& args, int64_t share, int64_t n, int64_t head, int64_t query,
                      const float* dq) const {
    const int64_t queries = std::min(kTile, g_.queries - query), row = g_.heads * g_.size;
    if (shares_ == 1 || (share == 0 && !staged_)) {
      return store_rows(dq, queries, g_.size, args.outputs[0], g_.query_at(n, query, head),
                        g_.query_step);
    }
    float* const to = shared_room(args) + (staged_ ? share : 0) * query_floats();
    for (int64_t i = 0; i < queries; ++i) {
      std::copy_n(dq + i * g_.size, g_.size, to + g_.result_at(n, query, head) + i * row);
    }
  }

  void finish(const KernelArgs& args) const override {
    if (shares_ == 1) return;
    const int64_t row = g_.heads * g_.size;
    float* const waiting = shared_room(args);
    Parts(g_.rows * g_.queries, row).run([&](int, int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        float* const from = waiting + i * row;
        if (!staged_) {
          add_to(args.outputs[0].as<float>() + i * g_.query_step, from, row);
        } else {
          add_to(from, from + query_floats(), row);
          narrow(from, args.outputs[0], i * g_.query_step, row);
        }
      }
    });
  }

  void run_queries(const KernelArgs& args, int64_t n, int64_t head, int64_t query, const Keys& keys,
                   const Sums& sums, const Rooms& r) const {
    const AttentionTensors from(g_, args.inputs);
    const auto rest = args.inputs.subspan(g_.sources());
    const AttentionExtras extras(g_, rest.subspan(3));
    const int64_t size = g_.size, length = extras.length(g_, n);
    const int64_t queries = std::min(kTile, g_.queries - query);
    const int64_t last = std::min(keys.end, g_.visible(query + queries - 1, length));
    const int64_t first = std::max(keys.begin, first_tile(g_, extras, n, query, queries));
    if (last <= first) return;
    const int64_t result = g_.result_at(n, query, head), step = g_.heads * size;
    // y passes through the room of k.
    const FloatRows y = float_rows(rest[0], result, queries, step, size, r.k);
    const FloatRows dy = float_rows(rest[2], result, queries, step, size, r.dy);
    float delta[kTile] = {}, lse[kTile] = {};
    row_products(queries, size, {dy.at, dy.row, 1}, {y.at, y.row, 1}, delta);
    for (int64_t i = 0; i < queries; ++i) {
      lse[i] = rest[1].as<const float>()[g_.lse_at(n, query + i, head)];
    }
    const FloatRows q =
        float_rows(from.q, g_.query_at(n, query, head), queries, g_.query_step, size, r.q);
    const auto scale = static_cast<float>(g_.scale);
    turn_rows(q.at, q.row, queries, size, scale, r.turned_q);
    turn_rows(dy.at, dy.row, queries, size, 1, r.turned_dy);
    for (int64_t key = first; key < last; key += kTile) {
      const ScoreTile tile = score_tile(g_, extras, n, query, queries, key);
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
  }

  const int64_t shares_;
  const int64_t middle_;
};

}  // namespace

extern const CpuKernel cpu_attention_backward{"attention_backward",
                                              make_attention<AttentionBackward>};

}  // namespace thimble
