#include "recipe/selection_report.h"

#include <nlohmann/json.hpp>

#include "base/io/json_object.h"

namespace thimble {

std::optional<std::string> as_asked(const std::optional<SelectionRecord>& choices,
                                    std::string_view field) {
  if (!choices) return std::nullopt;
  if (field == "fit") return "on";
  if (field == "memory" && !choices->asked.empty()) return choices->asked;
  return std::nullopt;
}

nlohmann::json to_json(const TechniqueGain& share) {
  return {{"what", share.what},
          {"flags", share.flags},
          {"tier", share.tier},
          {"saved_bytes", share.saved.count},
          {"paid_ms", share.ms_paid}};
}

nlohmann::json to_json(const SelectionRecord& choices) {
  nlohmann::json shares = nlohmann::json::array();
  for (const TechniqueGain& share : choices.gains) shares.push_back(to_json(share));
  return {{"asked", choices.asked},
          {"plain_arena_bytes", choices.plain_arena.count},
          {"plain_step_ms", choices.plain_ms},
          {"choices", shares}};
}

nlohmann::json to_json(const SelectionReport& report) {
  nlohmann::json all = to_json(static_cast<const SelectionRecord&>(report));
  all.update({{"allow", name_of(report.allow)},
              {"flags", report.flags},
              {"harm", report.risk},
              {"accuracy_risk", report.risk},
              {"steps_tried", report.tried},
              {"steps_planned", report.planned},
              {"seconds", report.seconds}});
  return all;
}

SelectionRecord selection_record_from(const nlohmann::json& choices_record) {
  static const std::vector<std::string> kKeys = {"asked", "plain_arena_bytes", "plain_step_ms",
                                                 "choices"};
  static const std::vector<std::string> kShareKeys = {"what", "flags", "tier", "saved_bytes",
                                                      "paid_ms"};
  const JsonObject record(choices_record, "what its budget chose", kKeys);
  SelectionRecord choices = {.asked = {},
                             .plain_arena = Bytes(record.whole("plain_arena_bytes")),
                             .plain_ms = record.real("plain_step_ms")};
  if (record.has("asked")) choices.asked = record.text("asked");  // older ones do not say it
  for (const nlohmann::json& entry : record.list("choices")) {
    const JsonObject share(entry, "a choice of its budget", kShareKeys);
    choices.gains.push_back({.what = share.text("what"),
                             .flags = share.text("flags"),
                             .tier = share.text("tier"),
                             .saved = Bytes(share.whole("saved_bytes")),
                             .ms_paid = share.real("paid_ms")});
  }
  return choices;
}

}  // namespace thimble
