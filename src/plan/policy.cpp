#include "plan/policy.h"

namespace thimble {

const Policy* find_policy(std::string_view name) {
  for (const Policy* policy : all_policies()) {
    if (policy->name == name) return policy;
  }
  return nullptr;
}

}  // namespace thimble
