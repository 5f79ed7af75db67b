// Policies decide when every value is computed, dropped and computed again. A policy is one file of
// plan/remat; the file name is the registration (see cmake/tables.cmake).
#pragma once

#include <span>
#include <string_view>

#include "plan/plan.h"

namespace thimble {

struct Policy {
  std::string_view name;
  std::string_view summary;
  // A schedule within the budget, where the policy heeds one and finds one; else its smallest. The
  // caller lays it out and refuses what does not fit.
  Schedule (*schedule)(const PlanRequest& request) = nullptr;
  // All schedules it chooses from, where that is more than one; they do not depend on the budget.
  std::vector<Schedule> (*candidates)(const PlanRequest& request) = nullptr;
};

std::span<const Policy* const> all_policies();
const Policy* find_policy(std::string_view name);  // null when there is none

}  // namespace thimble
