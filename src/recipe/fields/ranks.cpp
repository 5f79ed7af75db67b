// Processes that train together.
#include "recipe/fields/field_groups.h"

namespace thimble {

void list_ranks(Recipe& recipe, Fields& fields) {
  fields.group("Ranks");
  const std::string alone = recipe.ranks.several() ? "" : "without --ranks";
  fields.whole("ranks", recipe.ranks.count, {.least = 1, .most = 1 << 16},
               {.help = "Processes that train together; mpirun says it to `train`",
                .more = "processes that train together, a microbatch each at a time; `mpirun` says "
                        "it to `thimble train`, see [ranks](cluster.md)",
                .affects = affects::graph | affects::step_time});
  fields.choice("shard", "sharding", 4, recipe.ranks.shard,
                {.help = "What a rank keeps a part of: none, state, gradients or weights",
                 .more = "what each rank keeps a part of: `none`; optimizer `state`; `gradients`, "
                         "too; `weights`, too, gathered where they are used",
                 .placeholder = "WHAT",
                 .affects = affects::graph | affects::step_time,
                 .unused_reason = alone,
                 .warn_if_unused = true});
  fields.text("interconnect", recipe.interconnect,
              {.help = "What joins them: nvlink, pcie, 25gbe, memory, or LATENCY,BANDWIDTH in "
                       "seconds and bytes a second",
               .more = "what joins them, for predicted times: `nvlink`, `pcie`, `25gbe`, `memory` "
                       "(of one machine), or latency and bandwidth as numbers: `2e-6,2.5e10`",
               .usual = "what `calibrate` measured, else memory",
               .placeholder = "NAME",
               .unused_reason = alone,
               .warn_if_unused = true});
}

}  // namespace thimble
