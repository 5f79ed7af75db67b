// Sparse training: chosen weights are stored as packed nonzeros and a bitmap, so that values,
// gradients and optimizer state exist for nonzeros only. The dense tensor is made by `expand`
// before its readers and dropped after them. Its gradient goes to the nonzeros by `gather` at
// once.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"

namespace thimble {

// How nonzeros move during training (sparse/reallocate_nonzeros.h).
enum class SparseMethod : uint8_t {
  dynamic,    // pruned below a global threshold, grown where the survivors are
  fixed,      // "static": never
  magnitude,  // each weight loses its smallest and grows as many
};
std::string_view name_of(SparseMethod method);
// UserError for another name.
SparseMethod parse_sparse_method(std::string_view name);

struct SparsitySpec {
  double density = 0;                // share of elements kept, in (0, 1]; 0: every weight is dense
  std::vector<std::string> weights;  // shell patterns over weight names; empty: see sparsify()
  SparseMethod method = SparseMethod::dynamic;
  double threshold = 1e-3;  // the initial one, of `dynamic`
  double target = 0.05;     // to prune in a reallocation: a count from 1 on, a share below 1

  bool enabled() const { return density > 0; }
  bool operator==(const SparsitySpec&) const = default;
};

// UserError for numbers out of range.
void check_sparsity(const SparsitySpec& spec);

// Rewrites a forward graph, if the spec is enabled. A chosen weight keeps round(density n), at
// least one, of its n elements. Without patterns, every weight with two axes or more that is the
// matrix of a linear map is chosen, never embeddings, positions or norms. The stem (the first
// convolution), shortcuts and the last layer stay dense. UserError when a pattern matches no such
// weight. Graphs of a net for different rows are rewritten alike.
void sparsify(Graph& graph, const SparsitySpec& spec);

// REQUIRES: autodiff is done. Moves every `gather` right after the node that completes its
// gradient, so that the dense gradient is freed at once.
void gather_early(Graph& graph);

}  // namespace thimble
