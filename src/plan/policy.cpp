#include "plan/policy.h"

#include <algorithm>
#include <charconv>
#include <vector>

#include "base/error.h"
#include "base/nearest_name.h"

namespace thimble {

const Policy* find_policy(std::string_view name) {
  for (const Policy* policy : all_policies()) {
    if (policy->name == name) return policy;
  }
  return nullptr;
}

ChosenPolicy choose_policy(std::string_view spelling) {
  const size_t colon = spelling.find(':');
  const std::string_view name = spelling.substr(0, colon);
  const Policy* policy = find_policy(name);
  if (policy == nullptr) {
    std::vector<std::string> names;
    for (const Policy* known : all_policies()) names.emplace_back(known->name);
    user_error("there is no planner '{}'; known: {}{}", name, fmt::join(names, ", "),
               nearest_clause(name, names));
  }
  const PolicyNumber& number = policy->number;
  if (colon == std::string_view::npos) return {policy, number.usual};
  const std::string_view digits = spelling.substr(colon + 1);
  user_check(!number.meaning.empty(), "planner {} takes no number; leave ':{}' out", name, digits);
  int given = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), given);
  const bool whole = error == std::errc() && end == digits.data() + digits.size();
  user_check(whole && given >= number.least && given <= number.most,
             "'{}': the {} of {} is a whole number from {} to {}, as in {}:{}", spelling,
             number.meaning, name, number.least, number.most, name, number.usual);
  return {policy, given};
}

std::string_view keep_all_policy() {
  return (*std::ranges::find_if(all_policies(), [](auto* p) { return p->traits.keeps_all; }))->name;
}

std::string_view budget_policy() {
  return (*std::ranges::find_if(all_policies(), [](auto* p) { return p->traits.by_budget; }))->name;
}

}  // namespace thimble
