// The encodings of activations that an automatic codec chooses from.
#pragma once

#include <memory>
#include <vector>

#include "pipeline/pipeline.h"
#include "select/step_option.h"

namespace thimble {

// All of them, for that shape of a step alone; their risk is that of transform/codec_ladder.h. `plain` is
// the step with nothing encoded.
std::vector<std::unique_ptr<StepOption>> encoded_options(const Step& plain,
                                                         const SearchLimits& limits = {});

// The step with the encoding that suits its recipe's budget.
Selection select_encoding(const Step& plain, const SearchLimits& limits = {});

}  // namespace thimble
