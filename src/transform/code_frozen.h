// Quantized frozen matrices: their values become codes and scales (graph/coded_weight.h), and the
// nodes that read them decode them. Other frozen weights (vectors, filters, matrices that other ops
// read) are not changed.
#pragma once

#include <string>

#include "graph/coded_weight.h"

namespace thimble {

// REQUIRES: forward nodes alone. Tables of embeddings and heads that
// make logits stay in 16 bits (bf16) where the format has fewer, as bitsandbytes leaves them.
void code_frozen(Graph& graph, CodedFormat format);

// UserError where the format applies to no frozen matrix of the graph.
void check_codes_something(const Graph& graph, CodedFormat format);

}  // namespace thimble
