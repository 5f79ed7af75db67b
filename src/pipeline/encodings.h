// The encodings of activations that an automatic codec chooses from.
#pragma once

#include <memory>
#include <vector>

#include "pipeline/training_graph.h"
#include "pipeline/variant.h"

namespace thimble {

// One of them, with the step it makes.
struct EncodedStep {
  CodecSpec codec;
  double harm = 0;  // see transform/codec_ladder.h
  std::unique_ptr<TrainingGraph> training;
  Costs costs;
};
std::vector<EncodedStep> encoded_steps(const Recipe& recipe, const VariantShape& shape,
                                       Backend& backend);
// Of the first shape of the recipe's step.
std::vector<EncodedStep> encoded_steps(const Recipe& recipe, Backend& backend);

// Plans the recipe's step with the one of them that suits its budget: puts model, scalars and costs
// into `full`, and the choice into `codec`.
PlanResult plan_encoded(const Recipe& recipe, Backend& backend, Variant& full, CodecSpec& codec);

}  // namespace thimble
