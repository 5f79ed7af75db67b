// The combinations of techniques that are worth building. The step of each technique alone is built, and the
// cost of a combination is estimated from those. For every budget of a fixed row, the combinations that look
// fastest are taken.
#pragma once

#include <memory>
#include <vector>

#include "select/step_option.h"

namespace thimble {

// `requested` is the step as typed, and comes first. Steps that cannot be built are left out. Facts about steps
// are put into `facts`, and read where they are known.
std::vector<std::unique_ptr<StepOption>> options_worth_trying(std::unique_ptr<StepOption> requested,
                                                              const Choices& choices,
                                                              Machine& machine,
                                                              OptionFactsByFlags& facts,
                                                              const SearchLimits& limits);

}  // namespace thimble
