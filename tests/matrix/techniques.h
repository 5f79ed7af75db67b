// Every technique that saves memory or changes what it needs, spelt as a user spells it, and a tiny
// net to try them on.
#pragma once

#include <string>
#include <vector>

#include "base/bytes.h"

namespace thimble {

using Words = std::vector<std::string>;

struct Technique {
  std::string name;
  Words flags;  // as typed: "--flag", or "--flag=value"
};
// All but recomputation, which every one of them is tried with.
const std::vector<Technique>& all_techniques();

// Whether two can be asked for at once: they do not set one flag to different values.
bool can_be_typed_together(const Technique& a, const Technique& b);

// What became of a few training steps.
struct Attempt {
  std::string refused;      // the sentence, where flags do not go together; the rest is empty then
  Bytes planned, measured;  // arena
  std::vector<double> losses;
  std::string state;        // bytes of weights, statistics and optimizer state after the last step
};

// Trains for three steps; an InternalError comes out as it is.
Attempt train_with(const Words& flags);

}  // namespace thimble
