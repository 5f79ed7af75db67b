#include "recipe/budget_choices.h"

#include <nlohmann/json.hpp>

namespace thimble {

nlohmann::json to_json(const TechniqueShare& share) {
  return {{"what", share.what},
          {"flags", share.flags},
          {"tier", share.tier},
          {"saved_bytes", share.saved.count},
          {"paid_ms", share.ms_paid}};
}

nlohmann::json to_json(const BudgetChoices& choices) {
  nlohmann::json shares = nlohmann::json::array();
  for (const TechniqueShare& share : choices.shares) shares.push_back(to_json(share));
  return {{"plain_arena_bytes", choices.plain_arena.count},
          {"plain_step_ms", choices.plain_ms},
          {"choices", shares}};
}

BudgetChoices budget_choices_from(const nlohmann::json& record) {
  BudgetChoices choices = {.plain_arena = Bytes(record.at("plain_arena_bytes").get<int64_t>()),
                           .plain_ms = record.at("plain_step_ms").get<double>()};
  for (const nlohmann::json& share : record.at("choices")) {
    choices.shares.push_back({.what = share.at("what").get<std::string>(),
                              .flags = share.at("flags").get<std::string>(),
                              .tier = share.at("tier").get<std::string>(),
                              .saved = Bytes(share.at("saved_bytes").get<int64_t>()),
                              .ms_paid = share.at("paid_ms").get<double>()});
  }
  return choices;
}

}  // namespace thimble
