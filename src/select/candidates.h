// The recipes that a budget chooses from: what was asked for, changed by techniques of which nothing was
// said. They depend on the recipe, on what was said and on the tier, never on the budget.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "recipe/settings.h"

namespace thimble {

// One technique as it would be typed.
struct Change {
  std::string_view technique;  // About::technique of its fields
  Settings settings;
  std::string what;  // "microbatches of 10 rows"
  NumericsTier tier = NumericsTier::exact;
  double risk = 0;  // see Candidate
};
// "--precision bf16 --rounding stochastic"
std::string flags_of(const Settings& settings);

// A recipe to choose from. Exact candidates are the most faithful, then equivalent ones, then approximate ones
// by their accuracy risk. Risks of changes add up. From least to most:
// - mixed precision (with fp32 master weights, or rounded stochastically)
// - 8-bit optimizer state
// - activation compression (fp16 and int8, int4, int2)
// - statistics of micro-batches (an eighth of the batch at least, fewer rows)
// - sparse weights (half of them, 0.3, 0.1, and where they cannot move): more than all others together
struct Candidate {
  std::vector<Change> changes;  // less harm first
  Recipe recipe;
  NumericsTier tier = NumericsTier::exact;  // of the changes
  double risk = 0;                          // of all of them
  bool recomputes = true;  // false: only the plan that computes everything once is looked at
};

// The changes that each technique offers, beside none.
using Choices = std::vector<std::vector<Change>>;
// `graph` is the step of `requested`. Techniques with a field in `explicit_settings` are left as they are.
Choices choices_for(const Recipe& requested, const Settings& explicit_settings, NumericsTier allow,
                    const Graph& graph);

Settings all_changes(const Candidate& candidate);

// The recipe with the changes, which are of different techniques, checked. UserError where they do not go
// together.
Candidate changed(const Recipe& requested, std::vector<Change> changes);

// Rows of a microbatch worth trying, most first: what divides the batch, or halves of it where gaps are
// wide. The whole batch is not among them.
std::vector<int64_t> rows_to_try(int64_t batch, int64_t least);
// Rows between, most first: the fewest for so many microbatches, not too near to each other. The last
// microbatch is smaller, but no smaller than `least`.
std::vector<int64_t> rows_between(int64_t batch, int64_t more, int64_t fewer, int64_t least);
// Changes between two choices of a batch's rows. There are none between choices of its tokens.
std::vector<Change> microbatches_between(const Recipe& requested, const Change& more,
                                         const Change& fewer);

}  // namespace thimble
