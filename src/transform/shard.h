// Data parallel training with sharding (ZeRO, FSDP): the shards that each rank keeps, and the
// collectives between ranks. All ranks run one graph and one plan, on different rows.
//
//              weights    gradients                          state     an update
//   none       all        all, summed over the ranks         all       of all
//   state      all        all, of this rank; then a part     a part    of a part, then all-gathered
//   gradients  all        a part, summed at once             a part    of a part, then all-gathered
//   weights    a part,    a part, summed at once             a part    of a part
//              gathered
//              for use
//
// A part (shard) is one N-th of a tensor's elements, in order, rounded up. `state` is ZeRO-1,
// `gradients` ZeRO-2, `weights` ZeRO-3 (FSDP).
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
  // Whether gradients are summed over the ranks after every micro-batch, not at the end of the
  // step. Then N ranks of K micro-batches sum in the order of one rank with N K of them.
  bool sums_at_once() const { return shard == Shard::gradients || shard == Shard::weights; }
  bool operator==(const RanksSpec&) const = default;
};

// Attrs that every op on parts has. Parts of `elements` over that many ranks are multiples of
// `unit`.
Attrs part_attrs(const RanksSpec& ranks, int64_t elements, int64_t unit = 1);

// REQUIRES: no gradients yet. Sharded weights become this rank's shard, and their readers read an
// all-gather. With --shard weights (ZeRO-3, FSDP) all weights are sharded, and with --shard state
// the fp32 master weights. The gradient of a shard comes summed over the ranks.
void shard_weights(Graph& graph, const RanksSpec& ranks, int64_t unit);

// The sum of a gradient over the ranks: the whole (all-reduce), or this rank's part
// (reduce-scatter).
ValueId reduced(Builder& b, ValueId gradient, const RanksSpec& ranks, int64_t unit);
// The same for the valid gradients of all unsharded weights, right after the nodes that make them.
std::vector<ValueId> reduce_gradients(Graph& graph, std::span<const ValueId> weights,
                                      std::vector<ValueId> gradients, const RanksSpec& ranks,
                                      int64_t unit);

// Messages that a node sends from each rank, one after the other, and their bytes. None, unless the
// node is a collective.
struct Traffic {
  double messages = 0;
  double bytes = 0;
};
Traffic traffic_of(const Graph& graph, NodeId node);

// The sum of a value over the ranks (all-reduce).
ValueId add_sum_over_ranks(Builder& b, ValueId value, const RanksSpec& ranks);
// Makes every result (loss, metrics) its sum over the ranks, right after its node. Returns the
// sums.
std::vector<ValueId> reduce_results(Graph& graph, const RanksSpec& ranks);

}  // namespace thimble
