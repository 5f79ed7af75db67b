#include "sparse/reallocate_nonzeros.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "base/number/bits.h"
#include "base/number/random_choice.h"
#include "sparse/magnitude_threshold.h"
#include "sparse/proportional_allocation.h"

namespace thimble {
namespace {

// Optimizer state that is read along with a weight.
std::vector<ValueId> state_of(const Graph& graph, ValueId weight) {
  std::vector<ValueId> states;
  for (const Node& node : graph.nodes) {
    if (std::find(node.inputs.begin(), node.inputs.end(), weight) == node.inputs.end()) continue;
    for (const ValueId input : node.inputs) {
      if (graph[input].role == Role::optimizer_state) states.push_back(input);
    }
  }
  return states;
}

}  // namespace

bool ReallocationSchedule::due(int64_t steps_done) const {
  if (steps_done < 1 || steps_done > until) return false;
  int64_t period = 0;
  for (const Stage& stage : stages) {
    if (stage.from <= steps_done) period = stage.period;
  }
  return period > 0 && steps_done % period == 0;
}

ReallocationSchedule reallocation_schedule(int64_t every, int64_t steps_per_epoch, int64_t steps) {
  ReallocationSchedule schedule;
  schedule.until = steps - (steps + 19) / 20;
  if (every > 0) {
    schedule.stages = {{0, every}};
    return schedule;
  }
  schedule.stages = {{0, 100},
                     {25 * steps_per_epoch, 200},
                     {80 * steps_per_epoch, 400},
                     {140 * steps_per_epoch, 800}};
  return schedule;
}

Reallocator::Reallocator(Program& program, const SparsitySpec& spec, uint64_t seed)
    : program_(program),
      spec_(spec),
      dtype_(program.graph()[find_sparse_weights(program.graph()).values].type.dtype),
      total_(sparsity_of(program.graph()).nonzeros),
      key_(random_choice_key(seed, kSparseValues, "quotas")),
      threshold_value_(find_sparse_weights(program.graph()).threshold) {
  const Graph& graph = program.graph();
  const SparseWeights sparse = find_sparse_weights(graph);
  const auto add_pool = [&](ValueId value) {
    const auto size = static_cast<size_t>(size_of(graph[value].type.dtype));
    pools_.push_back({value, size});
  };
  add_pool(sparse.values);
  for (const ValueId state : state_of(graph, sparse.values)) {
    const Value& value = graph[state];
    user_check(is_floating(value.type.dtype) && value.type.elements() == total_,
               "the optimizer's '{}' is not kept number by number, so that it cannot move with its "
               "weights; choose --sparsity static, or another way to keep it",
               value.name);
    add_pool(state);
  }
  int64_t scratch = 0;
  for (const SparseWeight& weight : sparse.weights) {
    const Value& dense = graph[weight.dense];
    weights_.push_back(
        {dense.type.elements(), weight, scratch, random_choice_key(seed, dense.name, "growth")});
    scratch += bitmap_bytes(dense.type.elements());
  }
  scratch_ = Bytes(scratch);
  user_check(
      scratch_ <= program.free_between_steps(),
      "the arena has {} to spare between steps, too little to move sparse weights in; choose "
      "--sparsity static, or more rows (--microbatch)",
      to_string(program.free_between_steps()));
  mappings_.reserve(2 + pools_.size() + 2 * weights_.size());
  for (auto* list : {&active_, &pruned_, &survivors_, &room_, &grown_}) {
    list->resize(weights_.size());
  }
}

Reallocation Reallocator::run(int64_t steps_done) {
  Reallocation result;
  try {
    map_all();
    result = reallocate(steps_done);
    for (HostMapping& mapping : mappings_) mapping.give_back();
  } catch (...) {
    for (HostMapping& mapping : mappings_) mapping.drop();
    mappings_.clear();
    throw;
  }
  mappings_.clear();
  return result;
}

void Reallocator::map_all() {
  const auto map_to_host = [&](ValueId value) {
    return mappings_.emplace_back(program_.map_to_host(value, HostMapping::Use::change))
        .bytes()
        .data();
  };
  threshold_ = reinterpret_cast<double*>(map_to_host(threshold_value_));
  for (Pool& pool : pools_) pool.data = map_to_host(pool.value);
  std::byte* const scratch =
      mappings_.emplace_back(program_.map_free_between_steps(scratch_)).bytes().data();
  for (Weight& weight : weights_) {
    weight.mask = reinterpret_cast<uint8_t*>(map_to_host(weight.values.mask));
    weight.first = reinterpret_cast<int64_t*>(map_to_host(weight.values.first));
    weight.grown = reinterpret_cast<uint8_t*>(scratch + weight.grown_at);
  }
}

Reallocation Reallocator::reallocate(int64_t steps_done) {
  Reallocation result;
  result.threshold = *threshold_;
  result.below = choose_counts(steps_done);
  for (const int64_t count : pruned_) result.moved += count;
  close(steps_done);
  open();
  if (spec_.method == SparseMethod::dynamic) {
    const double target =
        spec_.target < 1 ? spec_.target * static_cast<double>(total_) : spec_.target;
    const auto below = static_cast<double>(result.below);
    if (below > 1.1 * target) *threshold_ /= 2;
    if (below < 0.9 * target) *threshold_ *= 2;
  }
  return result;
}

// Fills pruned_ and grown_. Returns what pruned_ would add up to if there were always room.
int64_t Reallocator::choose_counts(int64_t step) {
  const double share = spec_.target < 1 ? spec_.target : spec_.target / static_cast<double>(total_);
  int64_t wanted = 0, room = 0;
  for (size_t i = 0; i < weights_.size(); ++i) {
    const int64_t first = *weights_[i].first;
    const int64_t end = i + 1 < weights_.size() ? *weights_[i + 1].first : total_;
    active_[i] = end - first;
    room_[i] = weights_[i].elements - active_[i];
    int64_t count = 0;
    if (spec_.method == SparseMethod::magnitude) {
      count = std::min<int64_t>(std::llround(share * static_cast<double>(active_[i])), room_[i]);
    } else {
      for (int64_t at = first; at < end; ++at) {
        count += static_cast<double>(magnitude(at)) < *threshold_ ? 1 : 0;
      }
    }
    pruned_[i] = std::min(count, active_[i] - 1);
    wanted += pruned_[i];
    room += room_[i];
  }
  if (spec_.method == SparseMethod::magnitude) {
    grown_ = pruned_;
    return wanted;
  }
  const int64_t moved = std::min(wanted, room);
  if (moved < wanted) {
    survivors_ = pruned_;  // borrowed: in proportion to what each was to lose
    allocate_in_proportion(moved, survivors_, survivors_, key_, step, pruned_);
  }
  for (size_t i = 0; i < weights_.size(); ++i) survivors_[i] = active_[i] - pruned_[i];
  allocate_in_proportion(moved, survivors_, room_, key_, step, grown_);
  return wanted;
}

// `count` of the places that are zero now.
void Reallocator::note_growth(const Weight& weight, int64_t count, int64_t active, int64_t step) {
  std::memset(weight.grown, 0, static_cast<size_t>(bitmap_bytes(weight.elements)));
  if (count == 0) return;
  RandomChoice choice(weight.key, step, count, weight.elements - active);
  for (int64_t at = 0; at < weight.elements; ++at) {
    if (!test_bit(weight.mask, at) && choice.take()) set_bit(weight.grown, at);
  }
}

void Reallocator::close(int64_t step) {
  int64_t from = 0, to = 0;
  for (size_t i = 0; i < weights_.size(); ++i) {
    const Weight& weight = weights_[i];
    note_growth(weight, grown_[i], active_[i], step);
    MagnitudeThreshold smallest(pruned_[i], active_[i],
                                [&](int64_t at) { return magnitude(from + at); });
    for_each_one(weight.mask, 0, weight.elements, [&](int64_t at) {
      if (pruned_[i] > 0 && smallest.takes(magnitude(from))) {
        clear_bit(weight.mask, at);
      } else {
        move(to++, from);
      }
      ++from;
    });
  }
}

void Reallocator::open() {
  int64_t to = total_, from = 0;
  for (size_t i = 0; i < weights_.size(); ++i) from += active_[i] - pruned_[i];
  for (size_t i = weights_.size(); i-- > 0;) {
    const Weight& weight = weights_[i];
    for (int64_t at = weight.elements; at-- > 0;) {
      if (test_bit(weight.grown, at)) {
        clear(--to);
        set_bit(weight.mask, at);
      } else if (test_bit(weight.mask, at)) {
        move(--to, --from);
      }
    }
    *weight.first = to;
  }
  internal_check(to == 0 && from == 0, "a reallocation lost or made nonzeros");
}

float Reallocator::magnitude(int64_t at) const {
  return with_float_type(dtype_, [&]<class T>(TypeTag<T>) {
    return std::abs(static_cast<float>(reinterpret_cast<const T*>(pools_[0].data)[at]));
  });
}

void Reallocator::move(int64_t to, int64_t from) {
  if (to == from) return;
  for (const Pool& pool : pools_) {
    std::memcpy(pool.data + static_cast<size_t>(to) * pool.size,
                pool.data + static_cast<size_t>(from) * pool.size, pool.size);
  }
}

void Reallocator::clear(int64_t at) {
  for (const Pool& pool : pools_) {
    std::memset(pool.data + static_cast<size_t>(at) * pool.size, 0, pool.size);
  }
}

}  // namespace thimble
