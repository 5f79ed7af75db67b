// Ways to fine-tune a model, each at several lengths of its rows: all weights, or adapters beside
// weights kept in so many bits. Bytes and predicted times of a step, before anything is fetched or
// rented. Only plans.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/pipeline.h"
#include "plan/search/search_limits.h"
#include "recipe/settings.h"

namespace thimble {

struct WayPoint {
  Bytes arena;
  Bytes process;  // with it
  double milliseconds = 0;
};

// One way at one length.
struct WayRow {
  std::string name;   // "LoRA, NF4"
  std::string flags;  // as they would be typed
  int64_t length = 0;
  std::optional<WayPoint> kept;   // everything kept
  std::optional<WayPoint> least;  // in the least memory, with the same results
  std::string refused;            // why there is neither
};

struct WayTable {
  std::string model;
  int64_t batch = 0;
  std::optional<Bytes> budget;
  std::vector<WayRow> rows;
};

// `explicit_settings`: what was typed, less what the rows differ in. UserError where one of those
// was typed, or where the model has no length.
WayTable compare_ways(const Recipe& requested, const Settings& explicit_settings,
                      const std::vector<int64_t>& lengths, const std::shared_ptr<Machine>& machine,
                      const SearchLimits& limits);

// The recipe's length, and doublings of it that the model takes, four at most.
std::vector<int64_t> usual_lengths(const Recipe& requested);

std::string way_text(const WayTable& table);
nlohmann::json way_json(const WayTable& table);

}  // namespace thimble
