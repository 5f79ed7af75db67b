// Ranks that train together: what each of them keeps for itself, and where they talk to each other.
// All ranks run one graph and one plan; what differs is the rows they are fed.
//
//              weights    gradients                          state     an update
//   none       all        all, summed over the ranks         all       of all
//   state      all        all, of this rank; then a part     a part    of a part, which all then get
//   gradients  all        a part, summed at once             a part    of a part, which all then get
//   weights    a part,    a part, summed at once             a part    of a part
//              gathered
//              for use
//
// A part is one N-th of a tensor's elements, in order, rounded up.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "graph/builder.h"

namespace thimble {

enum class Shard : uint8_t { none, state, gradients, weights };
std::string_view name_of(Shard shard);

struct RanksSpec {
  int count = 1;
  Shard shard = Shard::none;

  bool several() const { return count > 1; }
  // Whether a rank keeps and updates a part of every weight's state.
  bool parts() const { return several() && shard != Shard::none; }
  // Whether the gradients of every microbatch are summed over the ranks at once, and not when the
  // step ends: then N ranks of K microbatches sum in the order of one rank with N K of them.
  bool sums_at_once() const { return shard == Shard::gradients || shard == Shard::weights; }
  bool operator==(const RanksSpec&) const = default;
};

// Attrs that every op on parts has. Parts of `elements` over that many ranks are multiples of `unit`.
Attrs part_attrs(const RanksSpec& ranks, int64_t elements, int64_t unit = 1);

// Before gradients are added: weights that are sharded become this rank's shard, and their readers read an
// all-gather. With --shard weights (ZeRO-3, FSDP) all weights are sharded, and with --shard state the fp32
// master weights. The gradient of a shard comes summed over the ranks.
void shard_weights(Graph& graph, const RanksSpec& ranks, int64_t unit);

// The sum of a gradient over the ranks: all of it, or this rank's part.
ValueId reduced(Builder& b, ValueId gradient, const RanksSpec& ranks, int64_t unit);
// The same of the gradients (where valid) of all weights that are whole, right behind what makes them.
std::vector<ValueId> reduce_gradients(Graph& graph, std::span<const ValueId> weights,
                                      std::vector<ValueId> gradients, const RanksSpec& ranks,
                                      int64_t unit);

// Messages that a node sends from each rank, one after the other, and their bytes. None, unless the node is
// a collective.
struct Traffic {
  double messages = 0;
  double bytes = 0;
};
Traffic traffic_of(const Graph& graph, NodeId node);

// All of the sum of a value over the ranks.
ValueId add_sum_over_ranks(Builder& b, ValueId value, const RanksSpec& ranks);
// Makes every result (loss, metrics) that, right behind what makes it. Returns them.
std::vector<ValueId> reduce_results(Graph& graph, const RanksSpec& ranks);

}  // namespace thimble
