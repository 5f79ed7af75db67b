// Apart from op.cpp: a backend in a library of its own has no table of ops.
#include <algorithm>

#include "graph/op.h"

namespace thimble {

const OpDef* find_op(std::string_view name) {
  const auto ops = all_ops();
  const auto at =
      std::lower_bound(ops.begin(), ops.end(), name,
                       [](const OpDef* op, std::string_view n) { return op->name < n; });
  return at != ops.end() && (*at)->name == name ? *at : nullptr;
}

}  // namespace thimble
