// Loss scaling for mixed precision: small gradients would vanish in fp16, so the loss is multiplied
// before autodiff, and updates divide again. A scale that is too large makes gradients overflow.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "graph/builder.h"
#include "transform/shard.h"

namespace thimble {

struct LossScaling {
  enum class Kind : uint8_t {
    none,
    fixed,    // overflow is not detected: weights and then the loss become infinite or NaN
    dynamic,  // a step whose gradients overflow is skipped as a whole, and the scale is reduced
  } kind = Kind::none;
  double start = 128;                 // the scale throughout, if fixed
  int64_t growth_interval = 1 << 14;  // steps without overflow until the scale is increased
  double growth = 2, backoff = 0.5;   // factors
  double floor = 1e-4;                // a scale below it is an error

  bool operator==(const LossScaling&) const = default;
};

// "none", "dynamic" or a number. UserError else.
LossScaling parse_loss_scaling(std::string_view text);
std::string name_of(const LossScaling& scaling);
// UserError where a setting is out of range.
void check_loss_scaling(const LossScaling& scaling);

// The gradient that arrives at the loss, f32 [1]: an input `loss_scale` when it is dynamic.
ValueId add_loss_scale(Graph& graph, const LossScaling& scaling);

// The inputs of an update that undo the loss scale: a factor on its gradient, and a flag of
// overflow.
struct Unscaling {
  ValueId factor;    // f32 [1]; invalid: the loss is not scaled
  ValueId overflow;  // f32 [1]: elements of gradients that are not finite; invalid: not counted
};
// A dynamic factor is known only once every gradient is, so every update waits for all gradients.
// With `in_parts` of several ranks, gradients are shards.
Unscaling add_unscaling(Builder& b, ValueId loss_scale, std::span<const ValueId> gradients,
                        const LossScaling& scaling, const RanksSpec& in_parts = {});

}  // namespace thimble
