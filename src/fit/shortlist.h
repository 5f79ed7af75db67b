// Which combinations of techniques are worth building. Of each technique alone the step is built; what a
// combination would cost is put together from those, roughly, and for every budget of a fixed row of
// them those that look fastest are taken.
#pragma once

#include <memory>
#include <vector>

#include "fit/step.h"

namespace thimble {

// `plain` is the step as typed. Steps that cannot be built are left out.
std::vector<std::unique_ptr<FitStep>> steps_worth_trying(std::unique_ptr<FitStep> plain,
                                                         const Choices& choices, Backend& backend);

}  // namespace thimble
