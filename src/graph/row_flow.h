// How the rows of a batch pass through a forward graph. Micro-batches (gradient accumulation) train
// what the whole batch would only where a loss is a sum over rows, or over a weight that is one:
// whatever else a net computes of several rows at once, micro-batches would compute of fewer. Each
// op says how it passes rows on (OpDef::rows); an op that does not say it counts as one that mixes
// them.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "graph/graph.h"

namespace thimble {

struct RowFlow {
  enum class Kind : uint8_t {
    fixed,    // the same whatever the rows are
    rows,     // element (o * rows + r) * inner + i depends on row r alone, o < outer, i < inner
    sum,      // adds up over micro-batches
    mean,     // their mean, weighted by their rows
    of_sums,  // a function of such sums and means that is none itself
    mixed,    // anything
  } kind = Kind::fixed;
  int64_t outer = 1, inner = 1;  // of rows
  double entries = 1;            // of sums: numbers of each row that were added up

  bool operator==(const RowFlow&) const = default;
};

inline constexpr RowFlow kMixed = {.kind = RowFlow::Kind::mixed};

// One node, for a batch of so many rows.
struct RowCall {
  const Attrs& attrs;
  std::span<const TensorType> inputs, outputs;
  std::span<const RowFlow> flows;  // of the inputs
  int64_t rows;
  // Of the outputs, if each had the same numbers for every row: `mixed` where no such tensor has
  // its shape. For ops that make a tensor of any size of what does not depend on rows.
  std::span<const RowFlow> repeated;
};

// The axis that rows lie along: of extent outer * rows * inner, rows between the two.
struct RowAxis {
  int axis;
  int64_t outer, inner;
};
// REQUIRES: flow.kind is rows. None where they lie across axes.
std::optional<RowAxis> row_axis(const RowFlow& flow, const Shape& shape, int64_t rows);
// The flow of a tensor of that shape whose rows lie so along that axis.
RowFlow along_axis(const RowAxis& rows, int axis, const Shape& shape);

// By value. The net is built for two numbers of rows, so that a constant whose shape follows them
// is known for one entry a row. REQUIRES: both are two at least. None where the graphs differ in
// more than sizes, or in a number.
std::optional<std::vector<RowFlow>> row_flows(const Graph& graph, int64_t rows, const Graph& other,
                                              int64_t other_rows,
                                              std::span<const ValueId> fed_by_row);

}  // namespace thimble
