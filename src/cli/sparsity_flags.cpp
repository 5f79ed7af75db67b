#include "cli/sparsity_flags.h"

#include "base/error.h"

namespace thimble {

void SparsityFlags::add_to(CLI::App& command) {
  command.option_defaults()->group("Sparsity");
  command.add_option("--density", density, "Share of nonzeros in sparse weights (all are dense)")
      ->type_name("X");
  command
      .add_option("--sparse", weights,
                  "Which ones, by weight name (all but stem, shortcuts, norms and the last layer)")
      ->type_name("GLOB")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command
      .add_option("--sparsity", method,
                  "How nonzeros move: dynamic, static (never) or magnitude (dynamic)")
      ->type_name("NAME");
  command.add_option("--prune-threshold", threshold, "dynamic: the first threshold (0.001)")
      ->type_name("X");
  command
      .add_option("--prune-target", target,
                  "Nonzeros to move at a time: a number, or a share below 1 (0.05)")
      ->type_name("N");
}

SparsitySpec SparsityFlags::spec() const {
  const char* alone = !weights.empty() ? "--sparse"
                      : method         ? "--sparsity"
                      : threshold      ? "--prune-threshold"
                      : target         ? "--prune-target"
                                       : nullptr;
  user_check(density || alone == nullptr,
             "{} says nothing without --density, the share of nonzeros",
             alone == nullptr ? "" : alone);
  SparsitySpec spec;
  if (!density) return spec;
  user_check(*density > 0 && *density <= 1, "--density lies above 0 and is 1 at most, not {}",
             *density);
  spec.density = *density;
  spec.weights = weights;
  if (method) spec.method = parse_sparse_method(*method);
  if (threshold) spec.threshold = *threshold;
  if (target) spec.target = *target;
  check_sparsity(spec);
  return spec;
}

}  // namespace thimble
