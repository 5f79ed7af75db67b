// Recomputation policies (activation checkpointing, rematerialization) decide when every value is
// computed, dropped and recomputed. A policy is one file of plan/remat, and the file's name is its
// registration (see cmake/tables.cmake).
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "plan/plan.h"

namespace thimble {

// A whole number that a policy takes, spelt after its name: "log_recursive:3".
struct PolicyNumber {
  std::string_view meaning;  // empty: the policy takes none
  int least = 0;
  int most = 0;
  int usual = 0;  // the default
};

struct PolicyTraits {
  bool keeps_all = false;  // the default policy
  bool by_budget = false;  // the fastest within a budget, of all schedules
};

struct Policy {
  std::string_view name;
  std::string_view summary;
  // Returns a schedule within the budget if the policy finds one, else its smallest one. Without a
  // budget it returns its smallest too, except for `optimal`, which returns its fastest. The caller
  // lays the schedule out and refuses a plan that does not fit.
  Schedule (*schedule)(const PlanRequest& request) = nullptr;
  Sharing sharing = Sharing::sharing;  // how far values share bytes
  PolicyNumber number = {};            // reaches the policy as PlanRequest::number
  // All schedules that it chooses from, whatever the budget. Null: it makes one schedule alone.
  std::vector<Schedule> (*candidates)(const PlanRequest& request) = nullptr;
  PolicyTraits traits = {};
};

std::span<const Policy* const> all_policies();
const Policy* find_policy(std::string_view name);  // null when there is none

// A policy as a user spells it. Throws UserError for a name or number that does not exist.
struct ChosenPolicy {
  const Policy* policy = nullptr;
  int number = 0;
};
ChosenPolicy choose_policy(std::string_view spelling);

}  // namespace thimble
