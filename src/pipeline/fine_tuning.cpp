#include "pipeline/fine_tuning.h"

#include "transform/adapt.h"
#include "transform/code_frozen.h"

namespace thimble {

void apply(const FineTuning& tuning, Model& model) {
  if (tuning.adapters.enabled()) adapt(model.graph, tuning.adapters, model.rng);
  if (!tuning.frozen) return;
  check_codes_something(model.graph, *tuning.frozen);
  code_frozen(model.graph, *tuning.frozen);
}

}  // namespace thimble
