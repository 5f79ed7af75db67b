// Which data set a folder is, by the names of what it holds.
#pragma once

#include <string>

namespace thimble {

struct GuessedData {
  std::string set;    // a data set's name
  std::string since;  // the file or folder that says so
};

// UserError where the folder holds nothing that a data set is known by, naming what would be.
GuessedData guess_data(const std::string& folder);

}  // namespace thimble
