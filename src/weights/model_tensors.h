// The model as other programs know it: weights and statistics, sparse weights in full.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "execute/program.h"
#include "graph/coded_weight.h"
#include "transform/sparse_weights.h"

namespace thimble {

struct ModelTensor {
  ValueId value;  // its name and type
  std::optional<SparseWeight> packed =
      {};  // stored in a pool of nonzeros; else at the value's own bytes
  std::optional<CodedWeight> coded = {};  // stored as codes and scales; the value holds the codes
};

// As other programs know it: of all ranks, decoded.
TensorType type_of(const ModelTensor& tensor, const Graph& graph);

// In the order of the graph's values, which is the same whether or not weights are sparse.
std::vector<ModelTensor> model_tensors(const Graph& graph);

// Bytes of the dense tensor from `offset` on. REQUIRES: offset and size are whole elements.
void read_model_tensor(Program& program, const ModelTensor& tensor, int64_t offset,
                       std::span<std::byte> out);
// The other way; of a sparse weight, what lies at its nonzeros is taken. REQUIRES: of a coded one,
// all of it.
void write_model_tensor(Program& program, const ModelTensor& tensor, int64_t offset,
                        std::span<const std::byte> in);

}  // namespace thimble
