#include "pipeline/fine_tuning.h"

#include <algorithm>

#include "transform/adapt.h"
#include "transform/code_frozen.h"

namespace thimble {
namespace {

// Invalid where a loss reads them.
ValueId logits_of(const Model& model) {
  if (model.loss.valid()) return {};
  const auto found = std::ranges::find(model.outputs, "logits", &Output::name);
  return found == model.outputs.end() ? ValueId{} : found->value;
}

}  // namespace

void apply(const FineTuning& tuning, Model& model) {
  AdapterSpec adapters = tuning.adapters;
  if (!model.options.training) adapters.dropout = 0;
  const ValueId logits = logits_of(model);
  if (adapters.enabled()) adapt(model.graph, adapters, model.rng, logits);
  if (!tuning.frozen) return;
  if (model.options.generating && !adapters.enabled()) {  // nothing is trained here
    for (Value& value : model.graph.values) {
      if (value.role == Role::weight) value.role = Role::frozen;
    }
  }
  check_codes_something(model.graph, *tuning.frozen);
  code_frozen(model.graph, *tuning.frozen, logits);
}

}  // namespace thimble
