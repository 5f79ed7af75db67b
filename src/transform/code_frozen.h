// Quantized frozen matrices: their values become codes and scales (graph/coded_weight.h), and the
// nodes that read them decode them. Other frozen weights (vectors, filters, matrices that other ops
// read) are not changed.
#pragma once

#include <string>

#include "graph/coded_weight.h"

namespace thimble {

// REQUIRES: a graph of forward nodes alone. If the format has fewer than 16 bits, embedding tables
// and heads that make logits are kept in bf16, as bitsandbytes leaves them.
// `logits`: those of a graph without a loss.
void code_frozen(Graph& graph, CodedFormat format, ValueId logits = {});

// UserError where the format applies to no frozen matrix of the graph.
void check_codes_something(const Graph& graph, CodedFormat format);

}  // namespace thimble
