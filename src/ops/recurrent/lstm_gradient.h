// How the gradients of lstm_cell and lstm_steps are built.
#pragma once

#include "graph/builder.h"

namespace thimble {

// The gradient of output k; zeros where nothing depends on it.
inline ValueId upstream_or_zeros(GradientBuilder& g, size_t k) {
  if (g.upstream(k).valid()) return g.upstream(k);
  return g.build().constant(0, g.build().type(g.output(k)));
}

// Builds `op`, which reads (x, h, c, w_x, w_h) and `rest`, and gives what it makes, (dh, dc, dw_x,
// dw_h, dbias [, dx]), to (x, h, c, w_x, w_h, bias).
inline void give_lstm_gradients(GradientBuilder& g, std::string_view op,
                                std::span<const ValueId> rest) {
  std::vector<ValueId> reads(g.node().inputs.begin(), g.node().inputs.begin() + 5);
  reads.insert(reads.end(), rest.begin(), rest.end());
  const std::vector<ValueId> d =
      g.build().apply(op, std::move(reads), {{"needs_dx", int64_t{g.wants(0)}}});
  for (size_t i = 1; i < 6; ++i) {
    if (g.wants(i)) g.give(i, d[i - 1]);
  }
  if (g.wants(0)) g.give(0, d[5]);
}

}  // namespace thimble
