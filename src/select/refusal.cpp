#include "select/refusal.h"

#include <fmt/format.h>

namespace thimble {

Refusal refusal_of(const Recipe& recipe, Infeasible infeasible) {
  std::string sentence = fmt::format(
      "planner {} cannot do with {}: it needs {} ({} bytes); {}; give more --memory, or try "
      "another "
      "--planner (`thimble list planners`)",
      recipe.planner, to_string(recipe.memory.value_or(Bytes())), to_string(infeasible.min_bytes),
      infeasible.min_bytes.count, infeasible.why);
  return {.least = std::move(infeasible), .sentence = std::move(sentence)};
}

}  // namespace thimble
