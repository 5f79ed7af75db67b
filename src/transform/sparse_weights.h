// Sparse weights: the packed nonzeros and bitmaps of a graph's sparse weights, found in the graph
// itself.
//
//   values     pool of the nonzeros of all of them, one weight after another; its size is fixed
//   mask       per weight, one bit per element (base/number/bits.h)
//   first      per weight, where its nonzeros begin in the pool
//   threshold  below which the next reallocation prunes (sparse/reallocate_nonzeros.h)
//
//   values [ conv1: 3 of 9 | conv2: 5 of 9 | conv3: 1 of 9 ]      nine nonzeros, wherever they are
//            ^ first         ^ first         ^ first
#pragma once

#include <cstdint>
#include <vector>

#include "graph/graph.h"

namespace thimble {

struct SparseWeight {
  ValueId dense;  // the result of expand; carries the weight's name, type and Init
  ValueId mask;   // u8
  ValueId first;  // i64 [1]
};

struct SparseWeights {
  ValueId values;     // invalid: the graph has none
  ValueId threshold;  // f64 [1]
  std::vector<SparseWeight> weights;

  bool empty() const { return weights.empty(); }
};

inline constexpr const char* kSparseValues = "sparse.values";
inline constexpr const char* kSparseThreshold = "sparse.threshold";

SparseWeights find_sparse_weights(const Graph& graph);

// Of all sparse weights: how many elements are kept, of how many.
struct Sparsity {
  int64_t nonzeros = 0;
  int64_t elements = 0;

  double density() const {
    return elements == 0 ? 1 : static_cast<double>(nonzeros) / static_cast<double>(elements);
  }
};
Sparsity sparsity_of(const Graph& graph);

}  // namespace thimble
