// Plans for people and for programs.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "plan/plan.h"

namespace thimble {

// Facts of a step that its plan does not hold.
struct StepFacts {
  std::string_view device;
  int64_t batch = 0;       // rows of the whole step
  int64_t microbatch = 0;  // rows computed at once
  std::string_view tier;
  double plan_seconds = 0;
};

// The machine interface of `plan` (docs/cli.md lists the fields). `bytes` is what lies in the arena
// at the moment of the peak; it adds up to peak_live_bytes.
nlohmann::json plan_summary(const StepFacts& facts, const Graph& graph, const Plan& plan);

// Bytes at the peak by role, and in the literature's three terms.
std::string memory_table(const Plan& plan);

// The same beside what a run measured.
std::string comparison_table(const Plan& plan, const std::array<Bytes, kRoles>& measured,
                             Bytes measured_arena);

}  // namespace thimble
