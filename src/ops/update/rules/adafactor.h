// Adafactor (Shazeer and Stern 2018). Its second moment is that of a weight's rows and columns, and
// its steps are clipped by the root mean square of all of the weight's: see adafactor_update.cpp.
#pragma once

#include "graph/update_rule.h"

namespace thimble {

struct Adafactor {
  static constexpr UpdateRule kRule = {
      .name = "adafactor",
      .summary = "Adafactor, second moments factored into rows and columns",
      .rate = 1e-3,
      .epsilon = 1e-30,
      .states = {{.name = "rows"}, {.name = "columns"}},
      .reads_step = true,
      .flops = 25,
      .op = "adafactor_update",
      .of_vectors = {{.name = "second_moment"}},
  };
};

}  // namespace thimble
