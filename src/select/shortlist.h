// Which combinations of techniques are worth building. Of each technique alone the step is built; what a
// combination would cost is put together from those, roughly, and for every budget of a fixed row of
// them those that look fastest are taken.
#pragma once

#include <memory>
#include <vector>

#include "select/step_option.h"

namespace thimble {

// `requested` is the step as typed, and comes first. Steps that cannot be built are left out.
std::vector<std::unique_ptr<StepOption>> options_worth_trying(std::unique_ptr<StepOption> requested,
                                                              const Choices& choices,
                                                              Machine& machine);

}  // namespace thimble
