// Candidates: the recipes that a budget chooses from. Each is the requested recipe, changed by
// techniques that the user left open (micro-batches for gradient accumulation, mixed precision,
// ...). They depend on the recipe, on its explicit settings and on the tier, never on the budget.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "recipe/settings.h"

namespace thimble {

// One technique, as a user would type it.
struct Change {
  std::string_view technique;  // About::technique of its fields
  Settings settings;
  std::string what;  // "microbatches of 10 rows"
  NumericsTier tier = NumericsTier::exact;
  double risk = 0;  // see Candidate
};
// "--precision bf16 --rounding stochastic"
std::string flags_of(const Settings& settings);

// A recipe to choose from. Exact candidates have the least accuracy risk, then equivalent ones,
// then approximate ones. Risks of changes add up. From least to most:
// - mixed precision (with fp32 master weights, or rounded stochastically)
// - 8-bit optimizer state
// - activation compression (fp16 and int8, int4, int2)
// - batch statistics of micro-batches: of an eighth of the batch or more, then of fewer rows
// - sparse weights (density 0.5, 0.3, 0.1, then with nonzeros that do not move): more than all
//   others together
struct Candidate {
  std::vector<Change> changes;  // lower risk first
  Recipe recipe;
  NumericsTier tier = NumericsTier::exact;  // the highest of the changes
  double risk = 0;                          // of all of them
  bool recomputes = true;  // false: only the plan without recomputation is considered
};

// By technique: its changes, of which a candidate has one at most.
using Choices = std::vector<std::vector<Change>>;
// `graph` is the step of `requested`, for that backend. Techniques with a field in `explicit_settings` are left as
// they are.
Choices choices_for(const Recipe& requested, const Settings& explicit_settings, NumericsTier allow,
                    const Graph& graph, Backend& backend);

Settings all_changes(const Candidate& candidate);

// The recipe with the changes, checked. REQUIRES: they are of different techniques. None: they
// cannot be combined.
std::optional<Candidate> with_changes(const Recipe& requested, std::vector<Change> changes);

// Rows of a micro-batch to try, most first: divisors of the batch, and halves where gaps between
// divisors are wide. The whole batch is not among them.
std::vector<int64_t> rows_to_try(int64_t batch, int64_t least);
// Rows between `more` and `fewer`, most first, not too close to each other. Of rows that give equally
// many micro-batches, the fewest are taken. The last micro-batch is smaller, but not below `least` rows.
std::vector<int64_t> rows_between(int64_t batch, int64_t more, int64_t fewer, int64_t least);
// Changes between two choices of a batch's rows. There are none between choices of its tokens.
std::vector<Change> microbatches_between(const Recipe& requested, const Change& more,
                                         const Change& fewer);

}  // namespace thimble
