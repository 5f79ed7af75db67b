// Functions of the subcommands that use a trained model.
#pragma once

#include "cli/options.h"
#include "generate/trained_model.h"

namespace thimble {

// On stderr, what was converted or left out of a file of weights; an empty note says nothing.
void say_note(const std::string& file, const std::string& note);

// The model that the flags name, on the device and threads that were typed.
TextModel text_model_of(const TrainedFlags& flags);

// Plans text generation, or reports why not in the form asked for and returns nothing (the caller
// exits 3). Notes go to stderr.
std::optional<PlannedGeneration> plan_text_or_explain(const Recipe& recipe,
                                                      const TextGeneration& asked, bool json);

}  // namespace thimble
