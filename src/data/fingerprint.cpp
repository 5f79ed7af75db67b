#include "data/fingerprint.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "base/io/json.h"
#include "base/nearest_name.h"

namespace thimble {
namespace {

// In the order in which differences are told: what says most comes first.
constexpr std::array<std::pair<const char*, const char*>, 7> kFields = {{
    {"set", "the data set"},
    {"train_records", "the number of training records"},
    {"test_records", "the number of test records"},
    {"vocabulary_sha256", "the sha256 of the vocabulary"},
    {"fields", "what a record has"},
    {"train_sha256", "the sha256 of the training records"},
    {"test_sha256", "the sha256 of the test records"},
}};

}  // namespace

nlohmann::json fingerprint_of(const DatasetInfo& info) {
  nlohmann::json json = {{"set", info.name},
                         {"train_records", info.train_count},
                         {"test_records", info.test_count},
                         {"fields", to_string(info.fields)}};
  if (!info.train_sha256.empty()) json["train_sha256"] = info.train_sha256;
  if (!info.test_sha256.empty()) json["test_sha256"] = info.test_sha256;
  if (!info.vocabulary_sha256.empty()) json["vocabulary_sha256"] = info.vocabulary_sha256;
  return json;
}

std::string difference_of_data(const nlohmann::json& before, const nlohmann::json& now) {
  std::vector<std::string> known;
  for (const auto& [field, what] : kFields) known.emplace_back(field);
  for (const auto& [key, value] : before.items()) {
    if (std::ranges::find(known, key) != known.end()) continue;
    return fmt::format("its record of them has a key '{}' that is none; the nearest is '{}'", key,
                       nearest_name(key, known));
  }
  for (const auto& [field, what] : kFields) {
    if (!before.contains(field) || !now.contains(field) || before[field] == now[field]) continue;
    return fmt::format("{} was {} and is {} now", what, json_text(before[field]),
                       json_text(now[field]));
  }
  return "";
}

}  // namespace thimble
