// Keeps frozen matrices in fewer bits: their values become codes and scales (graph/coded_weight.h),
// and nodes that read them decode them on their way. Other frozen weights (vectors,
// filters, matrices that are read in other ways) stay as they are.
#pragma once

#include <string>

#include "graph/coded_weight.h"

namespace thimble {

// REQUIRES: forward nodes alone. Tables of embeddings and heads that
// make logits stay in 16 bits (bf16) where the format has fewer, as bitsandbytes leaves them.
void code_frozen(Graph& graph, CodedFormat format);

// UserError where the graph has no frozen matrix that the format goes for.
void check_codes_something(const Graph& graph, CodedFormat format);

}  // namespace thimble
