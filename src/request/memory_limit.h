// The budget of `--memory auto`: the free memory of the device, less a margin.
#pragma once

#include <optional>
#include <string>

#include "backend/backend.h"
#include "comm/world.h"
#include "pipeline/step_size.h"
#include "request/request.h"

namespace thimble {

// On the CPU, of the whole run.
Bytes beside_arena(const Recipe& recipe);
// On a GPU, where the context is there already: the libraries' code and recorded steps.
inline constexpr Bytes kBesideArenaOnDevice{int64_t{768} << 20};

struct MemoryLimit {
  Bytes budget;
  Bytes available;
  Bytes margin;
  std::string from;  // what says so
};
// A sixteenth of what there is stays free, on top. UserError where nobody can say, where a
// container has no limit of its own, or where nothing is left. `root` as for available_memory().
MemoryLimit memory_limit(const Backend& backend, const Recipe& recipe,
                         const std::string& root = "");

// Puts the budget in bytes that `--memory auto` stands for into the request; none: another was
// said. Of several ranks, the least that one of them has; those of one machine share its memory.
std::optional<MemoryLimit> resolve_budget(Request& request, const Backend& backend,
                                          World* world = nullptr);

}  // namespace thimble
