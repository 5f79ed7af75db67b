#include "train/check_plans.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/io/json.h"
#include "base/io/sha256.h"
#include "comm/small_collectives.h"
#include "plan/plan_json.h"

namespace thimble {

void check_plans(Communicator& ranks, const Steps& training, const Steps& evaluation) {
  Sha256 hash;
  for (const Steps* steps : {&training, &evaluation}) {
    for (const auto& step : *steps) {
      nlohmann::json plan = to_json(step->plan);
      plan.erase("costs");  // where times come from; what matters is what they chose
      plan.erase("predicted_seconds");
      const std::string text = json_text(plan);
      hash.update(std::as_bytes(std::span(text)));
    }
  }
  const std::vector<std::string> digests = gathered(ranks, hash.hex());
  if (const size_t k = first_other_rank(digests); k > 0) {
    user_error(
        "rank {} plans other addresses than rank 0, as machines do that have other measured times "
        "or threads; choose --costs modelled, and --threads for all of them",
        k);
  }
}

}  // namespace thimble
