// Whether and how a run goes on with what its folder holds.
#pragma once

#include <string>

#include "recipe/settings.h"

namespace thimble {

enum class Resume : uint8_t {
  never,
  latest,    // from the latest checkpoint
  or_start,  // likewise, if there is one
};

// Whether the run goes on with what is in the folder. UserError where a new run would write over an
// old one that nobody allowed it to.
bool goes_on(Resume resume, bool overwrite, const std::string& out);

// A run that goes on keeps its activations as it began: an automatic codec is not chosen anew.
void resume_codec(const std::string& out, Recipe& recipe);
// A run that goes on from a checkpoint in `out` keeps what its budget chose when it began; with another
// budget it recomputes more, or less, and has the same bits.
void resume_choices(const std::string& out, Recipe& recipe, const Settings& said);

}  // namespace thimble
