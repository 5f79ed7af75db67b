// Every technique that saves memory or changes what it needs, spelt as a user spells it, and tiny
// nets to try them on.
#pragma once

#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "model/model.h"

namespace thimble {

using Words = std::vector<std::string>;

struct Technique {
  std::string name;
  Words flags;  // as typed: "--flag", or "--flag=value"
};
inline void PrintTo(const Technique& technique, std::ostream* out) { *out << technique.name; }
// All but recomputation, which every one of them is tried with.
const std::vector<Technique>& all_techniques();

// Whether two can be asked for at once: they do not set one flag to different values.
bool can_be_typed_together(const Technique& a, const Technique& b);

// By name: techniques that do not go together, and techniques that do not go with a net. All others do.
const std::vector<std::pair<std::string, std::string>>& refused_pairs();
bool are_refused(const std::string& a, const std::string& b);

struct Net {
  std::string name;
  Words words;                               // as typed
  decltype(ModelOptions::build) build = {};  // empty: the model named first
};
// A residual block of a wrn: all its kinds of ops in few enough nodes for the planner's searches to
// be quick.
const Net& one_block();
const std::vector<Net>& other_nets();

// The outcome of a few training steps.
struct Attempt {
  std::string refused;      // the sentence, where flags do not go together; the rest is empty then
  Bytes planned, measured;  // arena
  std::vector<double> losses;
  int64_t skipped = 0;  // steps whose gradients overflowed
  std::string state;    // bytes of weights, statistics and optimizer state after the last step
};

// Trains for three steps; an InternalError comes out as it is.
Attempt train_with(const Net& net, const Words& flags);

}  // namespace thimble
