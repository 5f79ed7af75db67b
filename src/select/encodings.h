// Activation compression for a budget (`--codec auto`): which activations are encoded, and by which
// codecs.
#pragma once

#include <memory>
#include <vector>

#include "pipeline/pipeline.h"
#include "select/step_option.h"

namespace thimble {

// The options, each with the risk of transform/codec_ladder.h. `plain` is the step with nothing
// encoded, and options have room for its shape alone.
std::vector<std::unique_ptr<StepOption>> encoded_options(const Step& plain,
                                                         const SearchLimits& limits = {});

// The step with the encoding that the selector picks for its recipe's budget.
Selection select_encoding(const Step& plain, const SearchLimits& limits = {});

}  // namespace thimble
