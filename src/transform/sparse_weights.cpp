#include "transform/sparse_weights.h"

namespace thimble {

SparseWeights find_sparse_weights(const Graph& graph) {
  SparseWeights sparse;
  for (const Node& node : graph.nodes) {
    if (!node.op->expands) continue;
    sparse.values = node.inputs[0];
    sparse.weights.push_back({node.outputs[0], node.inputs[2], node.inputs[1]});
  }
  sparse.threshold = graph.find(kSparseThreshold);
  return sparse;
}

Sparsity sparsity_of(const Graph& graph) {
  const SparseWeights sparse = find_sparse_weights(graph);
  Sparsity sum;
  if (sparse.empty()) return sum;
  sum.nonzeros = graph[sparse.values].type.elements();
  for (const SparseWeight& weight : sparse.weights) {
    sum.elements += graph[weight.dense].type.elements();
  }
  return sum;
}

}  // namespace thimble
