// A plan run in its one arena against the interpreter, which gives every value bytes of its own: the
// same kernels must give the same bits.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "backend/backend.h"
#include "plan/plan.h"
#include "support/tensor.h"

namespace thimble {

// The contents of a value that is present when a step begins: weights, state and constants as the first
// step finds them, inputs as each microbatch of each step does.
using Contents = std::function<Tensor(ValueId value, int step, int microbatch)>;

// Which result or persistent value has other bits after one of two steps, if any has; or that the plan
// does not reach as far as it says. REQUIRES: the plan was verified.
std::optional<std::string> find_other_bits(const Graph& graph, const Plan& plan, Backend& backend,
                                           const Contents& contents);

}  // namespace thimble
