#include "backend/cpu/attend/attention_tiles.h"

#include <cstring>
#include <limits>

#include "backend/cpu/pointwise/random_words.h"
#include "backend/cpu/pointwise/vector_math.h"

namespace thimble {
namespace {

constexpr float kNothing = -std::numeric_limits<float>::infinity();

// Sixteen floats, whatever registers there are.
typedef float Lanes __attribute__((vector_size(64)));

THIMBLE_INLINE void load(const float* from, Lanes& lanes) {
  std::memcpy(&lanes, from, sizeof lanes);
}

// Whether 24 vectors of sums stay in registers.
bool has_wide_registers() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512f") != 0;
#else
  return false;
#endif
}

// kRows rows of kVectors * sixteen columns: their sums stay in registers.
template <int kRows, int kVectors>
THIMBLE_INLINE void add_lanes(int64_t depth, const StridedMatrix& a, const float* b, int64_t b_row,
                              float* c, int64_t c_row) {
  Lanes sum[kRows][kVectors];
#pragma GCC unroll 6
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) load(c + r * c_row + v * 16, sum[r][v]);
  }
  for (int64_t k = 0; k < depth; ++k) {
    Lanes right[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) load(b + k * b_row + v * 16, right[v]);
    const float* left = a.at + k * a.column;
#pragma GCC unroll 6
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) sum[r][v] += left[r * a.row] * right[v];
    }
  }
#pragma GCC unroll 6
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      std::memcpy(c + r * c_row + v * 16, &sum[r][v], sizeof(Lanes));
    }
  }
}

template <int kVectors>
THIMBLE_INLINE void add_columns(int64_t m, int64_t depth, const StridedMatrix& a, const float* b,
                                int64_t b_row, float* c, int64_t c_row) {
  int64_t r = 0;
  const auto rest = [&] { return StridedMatrix{a.at + r * a.row, a.row, a.column}; };
  for (; r + 6 <= m; r += 6) add_lanes<6, kVectors>(depth, rest(), b, b_row, c + r * c_row, c_row);
  for (; r + 2 <= m; r += 2) add_lanes<2, kVectors>(depth, rest(), b, b_row, c + r * c_row, c_row);
  for (; r < m; ++r) add_lanes<1, kVectors>(depth, rest(), b, b_row, c + r * c_row, c_row);
}

THIMBLE_INLINE void add_column(int64_t m, int64_t depth, const StridedMatrix& a, const float* b,
                               int64_t b_row, float* c, int64_t c_row) {
  for (int64_t r = 0; r < m; ++r) {
    float sum = c[r * c_row];
    for (int64_t k = 0; k < depth; ++k) sum += a.at[r * a.row + k * a.column] * b[k * b_row];
    c[r * c_row] = sum;
  }
}

}  // namespace

THIMBLE_FOR_EACH_ISA void add_product(int64_t m, int64_t n, int64_t depth, StridedMatrix a,
                                      const float* b, int64_t b_row, float* c, int64_t c_row) {
  int64_t column = 0;
  if (has_wide_registers()) {
    for (; column + 64 <= n; column += 64) {
      add_columns<4>(m, depth, a, b + column, b_row, c + column, c_row);
    }
  }
  for (; column + 16 <= n; column += 16) {
    add_columns<1>(m, depth, a, b + column, b_row, c + column, c_row);
  }
  for (; column < n; ++column) add_column(m, depth, a, b + column, b_row, c + column, c_row);
}

THIMBLE_FOR_EACH_ISA void row_products(int64_t rows, int64_t columns, StridedMatrix a,
                                       StridedMatrix b, float* to) {
  for (int64_t r = 0; r < rows; ++r) {
    const float *left = a.at + r * a.row, *right = b.at + r * b.row;
    Lanes sums = {};
    int64_t c = 0;
    for (; c + 16 <= columns; c += 16) {
      Lanes x, y;
      load(left + c, x);
      load(right + c, y);
      sums += x * y;
    }
    float sum = 0;
    for (; c < columns; ++c) sum += left[c] * right[c];
    for (int lane = 0; lane < 16; ++lane) sum += sums[lane];
    to[r] = sum;
  }
}

THIMBLE_FOR_EACH_ISA void add_to(float* to, const float* from, int64_t count) {
  for (int64_t i = 0; i < count; ++i) to[i] += from[i];
}

THIMBLE_FOR_EACH_ISA void turn_rows(const float* from, int64_t row, int64_t rows, int64_t columns,
                                    float factor, float* to) {
  for (int64_t c = 0; c < columns; ++c) {
    for (int64_t r = 0; r < rows; ++r) to[c * kTile + r] = factor * from[r * row + c];
    for (int64_t r = rows; r < kTile; ++r) to[c * kTile + r] = 0;
  }
}

ScoreTile score_tile(const AttentionGeometry& g, const AttentionExtras& extras, int64_t n,
                     int64_t query, int64_t queries, int64_t key) {
  const int64_t length = extras.length(g, n);
  ScoreTile tile;
  tile.first_key = key;
  tile.keys = std::min(kTile, g.keys - key);
  tile.all_visible = queries == kTile;
  for (int64_t i = 0; i < queries; ++i) {
    tile.first[i] = std::max<int64_t>(extras.first(g, n, query + i) - key, 0);
    tile.visible[i] = std::clamp<int64_t>(g.visible(query + i, length) - key, 0, tile.keys);
    tile.all_visible = tile.all_visible && tile.first[i] == 0 && tile.visible[i] == tile.keys;
  }
  return tile;
}

int64_t first_tile(const AttentionGeometry& g, const AttentionExtras& extras, int64_t n,
                   int64_t query, int64_t queries) {
  int64_t first = extras.first(g, n, query);
  for (int64_t i = 1; i < queries; ++i) first = std::min(first, extras.first(g, n, query + i));
  return first / kTile * kTile;
}

THIMBLE_FOR_EACH_ISA void stream_softmax(const ScoreTile& tile, float* scores, float* largest,
                                         float* sum, float* fade) {
  float base[kTile], added[kTile] = {};
  if (!tile.all_visible) {
    for (int64_t j = 0; j < tile.keys; ++j) {
      float* const row = scores + j * kTile;
      for (int64_t i = 0; i < kTile; ++i) {
        row[i] = j >= tile.first[i] && j < tile.visible[i] ? row[i] : kNothing;
      }
    }
  }
  for (int64_t i = 0; i < kTile; ++i) base[i] = largest[i];
  for (int64_t j = 0; j < tile.keys; ++j) {
    const float* const row = scores + j * kTile;
    for (int64_t i = 0; i < kTile; ++i) base[i] = row[i] > base[i] ? row[i] : base[i];
  }
  // Where nothing was seen yet, any base does.
  for (int64_t i = 0; i < kTile; ++i) {
    const float finite = base[i] == kNothing ? 0 : base[i];
    fade[i] = vector_exp(largest[i] - finite);
    largest[i] = base[i];
    base[i] = finite;
  }
  for (int64_t j = 0; j < tile.keys; ++j) {
    float* const row = scores + j * kTile;
    for (int64_t i = 0; i < kTile; ++i) {
      row[i] = vector_exp(row[i] - base[i]);
      added[i] += row[i];
    }
  }
  for (int64_t i = 0; i < kTile; ++i) sum[i] = sum[i] * fade[i] + added[i];
}

THIMBLE_FOR_EACH_ISA RowSoftmax row_softmax(int64_t keys, float* scores) {
  float largest = scores[0];
  for (int64_t j = 1; j < keys; ++j) largest = scores[j] > largest ? scores[j] : largest;
  for (int64_t j = 0; j < keys; ++j) scores[j] = vector_exp(scores[j] - largest);
  float sums[16] = {}, sum = 0;
  int64_t j = 0;
  for (; j + 16 <= keys; j += 16) {
    for (int64_t lane = 0; lane < 16; ++lane) sums[lane] += scores[j + lane];
  }
  for (; j < keys; ++j) sum += scores[j];
  for (const float lane : sums) sum += lane;
  return {largest, sum};
}

THIMBLE_FOR_EACH_ISA void probabilities(const ScoreTile& tile, float* scores, const float* lse) {
  for (int64_t j = 0; j < tile.keys; ++j) {
    float* const row = scores + j * kTile;
    for (int64_t i = 0; i < kTile; ++i) {
      const float p = vector_exp(row[i] - lse[i]);
      row[i] = j >= tile.first[i] && j < tile.visible[i] ? p : 0;
    }
  }
}

THIMBLE_FOR_EACH_ISA void score_gradients(int64_t keys, float scale, const float* delta,
                                          const float* kept, float* p, float* dp) {
  for (int64_t j = 0; j < keys; ++j, p += kTile, dp += kTile) {
    if (kept == nullptr) {
      for (int64_t i = 0; i < kTile; ++i) dp[i] = scale * p[i] * (dp[i] - delta[i]);
    } else {
      const float* const factor = kept + j * kTile;
      for (int64_t i = 0; i < kTile; ++i) {
        dp[i] = scale * p[i] * (factor[i] * dp[i] - delta[i]);
        p[i] *= factor[i];
      }
    }
  }
}

THIMBLE_FOR_EACH_ISA void draw_kept(const AttentionGeometry& g, const int64_t* rng, int64_t n,
                                    int64_t head, int64_t query, const ScoreTile& tile,
                                    float* kept) {
  const RandomStream random(rng, g.stream);
  const auto p = static_cast<float>(g.drop), scale = static_cast<float>(1 / (1 - g.drop));
  uint32_t first[kTile];  // draw of each query
  for (int64_t i = 0; i < kTile; ++i) {
    const int64_t own = std::min(query + i, g.queries - 1);
    first[i] = static_cast<uint32_t>((g.random_element(n, own, head) + tile.first_key) / 4);
  }
  for (int64_t j = 0; j < tile.keys; j += 4) {
    for (int64_t i = 0; i < kTile; i += kRandomLanes) {
      uint32_t draws[kRandomLanes], words[kRandomGroup];
      for (int l = 0; l < kRandomLanes; ++l) draws[l] = first[i + l] + static_cast<uint32_t>(j / 4);
      random_draws(random, draws, words);
      for (int64_t e = 0; e < std::min<int64_t>(4, tile.keys - j); ++e) {
        for (int l = 0; l < kRandomLanes; ++l) {
          kept[(j + e) * kTile + i + l] = uniform_of(words[4 * l + e]) >= p ? scale : 0;
        }
      }
    }
  }
}

THIMBLE_FOR_EACH_ISA void multiply_all(int64_t count, const float* by, float* values) {
  for (int64_t i = 0; i < count; ++i) values[i] *= by[i];
}

THIMBLE_FOR_EACH_ISA void scale_rows(int64_t rows, int64_t columns, const float* factors,
                                     float* values) {
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) values[r * columns + c] *= factors[r];
  }
}

}  // namespace thimble
