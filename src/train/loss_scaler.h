// The loss scale from step to step (transform/loss_scale.h).
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>

#include "transform/loss_scale.h"

namespace thimble {

class LossScaler {
 public:
  explicit LossScaler(const LossScaling& scaling) : scaling_(scaling), scale_(scaling.start) {}

  bool dynamic() const { return scaling_.kind == LossScaling::Kind::dynamic; }
  double scale() const { return scale_; }
  int64_t skipped() const { return skipped_; }  // steps, in all

  // A step is over. After an overflow (the step was skipped) the scale goes down; after enough
  // clean steps in a row it goes up. UserError when it falls below its floor.
  void step_done(bool overflow);

  nlohmann::json to_json() const;
  // False when it is not what to_json() writes.
  bool from_json(const nlohmann::json& json);

 private:
  const LossScaling scaling_;
  double scale_;
  int64_t clean_ = 0;  // steps since the last overflow or change
  int64_t skipped_ = 0;
};

}  // namespace thimble
