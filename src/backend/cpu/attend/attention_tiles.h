// Attention on a CPU, a tile of kTile queries by kTile keys at a time. Scores are held turned,
// [keys, queries]: then keys are used where they lie, queries are turned once for all keys, and
// softmax, along the keys, runs side by side for all queries of a tile.
#pragma once

#include "backend/cpu/cpu_kernel.h"
#include "backend/cpu/parallel.h"
#include "ops/attend/attention_geometry.h"

namespace thimble {

constexpr int64_t kTile = 64;

// A matrix of floats: element (r, c) is at[r * row + c * column].
struct StridedMatrix {
  const float* at;
  int64_t row, column;
};

// c [m,n] += a [m,depth] b [depth,n]; the columns of b and c are neighbours.
void add_product(int64_t m, int64_t n, int64_t depth, StridedMatrix a, const float* b,
                 int64_t b_row, float* c, int64_t c_row);

// to[r] = the sum of a's row r times b's, of sixteen sums side by side.
void row_products(int64_t rows, int64_t columns, StridedMatrix a, StridedMatrix b, float* to);

// to += from
void add_to(float* to, const float* from, int64_t count);

// to [columns, kTile] = factor * from [rows, columns] turned; zeros behind the last row.
void turn_rows(const float* from, int64_t row, int64_t rows, int64_t columns, float factor,
               float* to);

// The keys [first_key, first_key + keys) by the queries of a tile of one head of one row of the
// batch.
struct ScoreTile {
  int64_t first_key = 0, keys = 0;
  // Of each query the keys [first, visible) that it sees, counted from first_key.
  int64_t first[kTile] = {}, visible[kTile] = {};
  bool all_visible = false;
};

// Streams a softmax over tiles of keys. On return a score is exp(score - largest) where its key is
// visible, else 0, and both `largest` and `sum` include the tile. Earlier results shrink by `fade`.
void stream_softmax(const ScoreTile& tile, float* scores, float* largest, float* sum, float* fade);

// The softmax of one query: scores = exp(score - largest). REQUIRES: there is one.
struct RowSoftmax {
  float largest, sum;
};
RowSoftmax row_softmax(int64_t keys, float* scores);

// scores = exp(scores - lse) where the key is visible, else 0.
void probabilities(const ScoreTile& tile, float* scores, const float* lse);

// dp = scale * p * (kept * dp - delta), then p = kept * p, kept being 1 without dropout (null).
void score_gradients(int64_t keys, float scale, const float* delta, const float* kept, float* p,
                     float* dp);

// Dropout's factor for each probability of a tile, for queries from `query` on. REQUIRES: dropout.
void draw_kept(const AttentionGeometry& g, const int64_t* rng, int64_t n, int64_t head,
               int64_t query, const ScoreTile& tile, float* kept);
void multiply_all(int64_t count, const float* by, float* values);
// values [rows, columns], each row by its own factor.
void scale_rows(int64_t rows, int64_t columns, const float* factors, float* values);

// Rows of a tensor as floats: f32 ones where they lie, others widened into room.
struct FloatRows {
  const float* at;
  int64_t row;
};
inline FloatRows float_rows(const TensorRef& tensor, int64_t first, int64_t rows, int64_t step,
                            int64_t columns, float* room) {
  if (tensor.type.dtype == DType::f32) return {tensor.as<const float>() + first, step};
  for (int64_t r = 0; r < rows; ++r) widen(tensor, first + r * step, columns, room + r * columns);
  return {room, columns};
}

// Rounds rows [rows, columns] to where they belong.
inline void store_rows(const float* from, int64_t rows, int64_t columns, const TensorRef& to,
                       int64_t first, int64_t step) {
  for (int64_t r = 0; r < rows; ++r) {
    const float* const row = from + r * columns;
    if (to.type.dtype == DType::f32) {
      std::copy_n(row, columns, to.as<float>() + first + r * step);
    } else {
      narrow(row, to, first + r * step, columns);
    }
  }
}

// The tensors behind q, k and v, or their gradients: packed, all of them are the same, and k and v
// begin behind q.
struct AttentionTensors {
  const TensorRef &q, &k, &v;
  int64_t first_k, first_v;

  AttentionTensors(const AttentionGeometry& g, std::span<const TensorRef> tensors)
      : q(tensors[0]),
        k(tensors[g.packed ? 0 : 1]),
        v(tensors[g.packed ? 0 : 2]),
        first_k(g.packed ? g.heads * g.size : 0),
        first_v(g.packed ? (g.heads + g.groups) * g.size : 0) {}
};

// A kernel whose units of work do not meet, each with room of its own in floats.
class TiledAttention : public Kernel {
 public:
  void run(const KernelArgs& args) final {
    parts_.run([&](int part, int64_t begin, int64_t end) {
      float* const room = reinterpret_cast<float*>(args.workspace) + part * room_;
      for (int64_t unit = begin; unit < end; ++unit) run_unit(args, unit, room);
    });
    finish(args);
  }

 protected:
  TiledAttention(const Signature& s, const AttentionGeometry& g, int64_t units, int64_t cost)
      : g_(g), staged_(is_sixteen_bit(s.inputs[0].dtype)), parts_(units, cost) {
    name = staged_ ? "own, staged" : "own";
  }
  // Of each thread, and of all of them together.
  void take_room(int64_t floats, int64_t shared = 0) {
    room_ = floats;
    const int64_t all = parts_.count() * floats + shared;
    workspace = Bytes(all * static_cast<int64_t>(sizeof(float)));
  }
  float* shared_room(const KernelArgs& args) const {
    return reinterpret_cast<float*>(args.workspace) + parts_.count() * room_;
  }
  virtual void run_unit(const KernelArgs& args, int64_t unit, float* room) const = 0;
  // Behind all units.
  virtual void finish(const KernelArgs&) const {}

  const AttentionGeometry g_;
  const bool staged_;

 private:
  const Parts parts_;
  int64_t room_ = 0;
};

// Null unless tensors are of a type that kernels know, and there is something to do.
template <class K>
std::unique_ptr<Kernel> make_attention(const Signature& s) {
  const AttentionGeometry g = attention_geometry(s.op->name, s.inputs, s.attrs);
  const bool fits = is_stageable(s.inputs[0].dtype) && g.rows * g.queries * g.keys > 0;
  return fits ? std::make_unique<K>(s, g) : nullptr;
}

// Fills the parts of a tile that depend on where it is, for queries [query, query + queries) of row
// n of the batch.
ScoreTile score_tile(const AttentionGeometry& g, const AttentionExtras& extras, int64_t n,
                     int64_t query, int64_t queries, int64_t key);

// The first key of the first tile that any of these queries sees a part of.
int64_t first_tile(const AttentionGeometry& g, const AttentionExtras& extras, int64_t n,
                   int64_t query, int64_t queries);

}  // namespace thimble
