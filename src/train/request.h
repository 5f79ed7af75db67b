// From what was asked for, by name, to a recipe and its data: what the command line and the library's
// other doors share.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "recipe/settings.h"
#include "train/feeder.h"

namespace thimble {

// What was asked for, on top of the recipe file that may stand in place of the model.
struct Asked {
  Recipe recipe;
  Settings said;
  Settings run;  // what a recipe file says of one run and not of its numbers: out, resume, ...
  std::vector<std::string> notes;  // on what is said and has no effect
};
// UserError for a setting that cannot have an effect; of what a file says without effect, a note.
Asked ask(const std::string& model, const Settings& typed);

// The recipe, and the data set where one was named (or is needed).
struct Resolved {
  Recipe recipe;
  Settings said;  // as in Asked
  Settings run;
  std::unique_ptr<Dataset> dataset;  // null: a plan without --data
};
Resolved resolve(const Asked& asked, bool needs_data);

std::unique_ptr<Feeder> make_feeder(const Resolved& resolved);

}  // namespace thimble
