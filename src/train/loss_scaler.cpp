#include "train/loss_scaler.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"

namespace thimble {
namespace {

// Gradients of the loss times this are finite in f32 as long as those of the loss are below one.
constexpr double kLargestScale = 0x1p120;

}  // namespace

void LossScaler::step_done(bool overflow) {
  if (!dynamic()) return;
  if (overflow) {
    ++skipped_;
    clean_ = 0;
    scale_ *= scaling_.backoff;
    user_check(
        scale_ >= scaling_.floor,
        "the loss scale fell to {:.3g}, below {:.3g}, and gradients still overflow, so "
        "the scale is not at fault; try a lower --lr, a warm-up (--warmup), or --precision bf16",
        scale_, scaling_.floor);
  } else if (++clean_ >= scaling_.growth_interval) {
    clean_ = 0;
    scale_ = std::min(scale_ * scaling_.growth, kLargestScale);
  }
}

nlohmann::json LossScaler::to_json() const {
  return {{"scale", scale_}, {"clean", clean_}, {"skipped", skipped_}};
}

bool LossScaler::from_json(const nlohmann::json& json) {
  if (!json.is_object() || !json.contains("scale") || !json["scale"].is_number()) return false;
  for (const char* name : {"clean", "skipped"}) {  // counts
    if (!json.contains(name) || !json[name].is_number_unsigned()) return false;
    if (json[name].get<uint64_t>() > INT64_MAX) return false;
  }
  scale_ = json["scale"].get<double>();
  clean_ = json["clean"].get<int64_t>();
  skipped_ = json["skipped"].get<int64_t>();
  return scale_ > 0;
}

}  // namespace thimble
