// A shortlist: the combinations of techniques that are worth building. The step of each technique
// alone is built, and the cost of a combination is estimated from these. The combinations that look
// fastest at any of a fixed row of budgets are built.
#pragma once

#include <memory>
#include <vector>

#include "select/step_option.h"

namespace thimble {

// `requested`, the step as typed, comes first. Steps that cannot be built are left out. `facts` is
// a cache of facts about steps.
std::vector<std::unique_ptr<StepOption>> options_worth_trying(std::unique_ptr<StepOption> requested,
                                                              const Choices& choices,
                                                              Machine& machine,
                                                              OptionFactsByFlags& facts,
                                                              const SearchLimits& limits);

}  // namespace thimble
