// The techniques that a budget selected, for later readers of a plan: one by one, from the plain
// step that keeps everything to the plan.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/number/bytes.h"
#include "transform/numerics_tier.h"

namespace thimble {

// A technique's part in a plan, beyond those before it in the list.
struct TechniqueGain {
  std::string what;    // "microbatches of 10 rows"
  std::string flags;   // as it would be typed: "--microbatch 10"
  std::string tier;    // what it does to the numbers
  Bytes saved;         // of the arena; below 0: it takes more by itself
  double ms_paid = 0;  // of a step, predicted; below 0: faster
};

struct SelectionRecord {
  std::string asked;  // the budget as it was typed: "12MiB", "least", "auto"; empty: not on record
  Bytes plain_arena;  // as typed, everything kept
  double plain_ms = 0;
  std::vector<TechniqueGain> gains;  // milder ones first; recomputation last
};

// How they were chosen.
struct SelectionReport : SelectionRecord {
  NumericsTier allow = NumericsTier::equivalent;
  std::string flags;   // all that was chosen and the budget, to be typed
  double risk = 0;     // accuracy risk: select/candidates.h
  int tried = 0;       // steps that were built
  int planned = 0;     // of which planned in full
  double seconds = 0;  // of choosing
};

// How a field of the recipe that was chosen reads to people: as it was asked for. The recipe itself
// names the choices and what came of the budget, so that it trains the same again. Nothing: as the
// recipe has it.
std::optional<std::string> as_asked(const std::optional<SelectionRecord>& choices,
                                    std::string_view field);

nlohmann::json to_json(const TechniqueGain& share);
nlohmann::json to_json(const SelectionRecord& choices);
nlohmann::json to_json(const SelectionReport& report);
// UserError where it is none.
SelectionRecord selection_record_from(const nlohmann::json& json);

}  // namespace thimble
