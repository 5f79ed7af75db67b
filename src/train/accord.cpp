#include "train/accord.h"

#include "base/error.h"
#include "base/json.h"
#include "base/sha256.h"
#include "comm/agreement.h"
#include "data/fingerprint.h"
#include "plan/plan_json.h"

namespace thimble {
namespace {

// Fields that may differ from machine to machine.
constexpr std::array<const char*, 2> kOfOneMachine = {"data_dir", "costs"};

// The first rank that has another text than rank 0; 0: none.
size_t first_other(const std::vector<std::string>& texts) {
  for (size_t k = 1; k < texts.size(); ++k) {
    if (texts[k] != texts[0]) return k;
  }
  return 0;
}

// "batch = 32, there 64".
std::string first_difference(const std::string& own, const std::string& of_first) {
  const nlohmann::json here = nlohmann::json::parse(own), there = nlohmann::json::parse(of_first);
  for (const auto& [key, value] : there.items()) {
    if (here.contains(key) && here[key] == value) continue;
    return fmt::format("{} = {}, there {}", key,
                       here.contains(key) ? json_text(here[key]) : "(nothing)", json_text(value));
  }
  return "its fields are others";
}

}  // namespace

void check_terms(Communicator& ranks, const Terms& own) {
  const std::vector<std::string> programs = gathered(ranks, own.program);
  if (const size_t k = first_other(programs); k > 0) {
    user_error("rank {} runs {}, and rank 0 runs {}; start the same program everywhere", k,
               programs[k], programs[0]);
  }
  nlohmann::json recipe = own.recipe;
  for (const char* key : kOfOneMachine) recipe.erase(key);
  const std::vector<std::string> recipes = gathered(ranks, json_text(recipe));
  if (const size_t k = first_other(recipes); k > 0) {
    user_error(
        "rank {} was started with another recipe than rank 0: {}; start all ranks with the same "
        "command",
        k, first_difference(recipes[k], recipes[0]));
  }
  const std::vector<std::string> data = gathered(ranks, json_text(own.data));
  if (const size_t k = first_other(data); k > 0) {
    user_error("rank {} reads other data than rank 0: {}; give all ranks the same files", k,
               difference_of_data(nlohmann::json::parse(data[0]), nlohmann::json::parse(data[k])));
  }
}

void check_plans(Communicator& ranks, const Variants& training, const Variants& evaluation) {
  Sha256 hash;
  for (const Variants* variants : {&training, &evaluation}) {
    for (const auto& variant : *variants) {
      nlohmann::json plan = to_json(variant->plan);
      plan.erase("costs");  // where times come from; what matters is what they chose
      plan.erase("predicted_seconds");
      const std::string text = json_text(plan);
      hash.update(std::as_bytes(std::span(text)));
    }
  }
  const std::vector<std::string> digests = gathered(ranks, hash.hex());
  if (const size_t k = first_other(digests); k > 0) {
    user_error(
        "rank {} plans other addresses than rank 0, as machines do that have other measured times "
        "or threads; choose --costs modelled, and --threads for all of them",
        k);
  }
}

}  // namespace thimble
