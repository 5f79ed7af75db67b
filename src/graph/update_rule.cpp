#include "graph/update_rule.h"

namespace thimble {

const UpdateRule* find_update_rule(std::string_view name) {
  for (const UpdateRule* rule : all_update_rules()) {
    if (rule->name == name) return rule;
  }
  return nullptr;
}

}  // namespace thimble
