#include "execute/measure.h"

#include <algorithm>
#include <map>

namespace thimble {
namespace {

// Bytes [at, end) from the call that first wrote them to the last that read them.
struct Extent {
  int64_t end = 0;
  int first = 0;
  int last = 0;
  Role role = Role::activation;
};

class Meter {
 public:
  explicit Meter(size_t calls) : change_(calls + 1) {}

  void write(int64_t at, int64_t size, int call, Role role) {
    const int64_t end = at + align_up(Bytes(size)).count;
    auto it = extents_.lower_bound(at);
    if (it != extents_.begin() && std::prev(it)->second.end > at) --it;
    bool continues = false;
    while (it != extents_.end() && it->first < end) {
      // Written over while still in use, at the very same bytes: in place, and the use goes on.
      if (it->first == at && it->second.end == end && it->second.last >= call) {
        continues = true;
        ++it;
        continue;
      }
      retire(it->first, it->second);
      it = extents_.erase(it);
    }
    if (!continues) extents_[at] = {end, call, call, role};
  }

  void read(int64_t at, int call) {
    Extent& extent = extents_.at(at);
    extent.last = std::max(extent.last, call);
  }

  Measurement finish(Bytes arena) {
    for (const auto& [at, extent] : extents_) retire(at, extent);
    Measurement result;
    result.arena = arena;
    std::array<int64_t, kRoles> live{};
    for (const auto& delta : change_) {
      int64_t total = 0;
      for (size_t r = 0; r < live.size(); ++r) total += live[r] += delta[r];
      if (total <= result.peak_live.count) continue;
      result.peak_live = Bytes(total);
      for (size_t r = 0; r < live.size(); ++r) result.by_role[r] = Bytes(live[r]);
    }
    return result;
  }

 private:
  void retire(int64_t at, const Extent& extent) {
    const size_t role = static_cast<size_t>(extent.role);
    change_[static_cast<size_t>(extent.first)][role] += extent.end - at;
    change_[static_cast<size_t>(extent.last) + 1][role] -= extent.end - at;
  }

  std::map<int64_t, Extent> extents_;  // by address
  std::vector<std::array<int64_t, kRoles>> change_;
};

}  // namespace

Measurement measure(const Program& program) {
  const Graph& graph = program.graph();
  const Plan& plan = program.plan();
  const int last = static_cast<int>(plan.calls.size()) - 1;
  const auto each = std::find_if(plan.calls.begin(), plan.calls.end(), [&](const PlannedCall& s) {
    return graph[s.node].phase == Phase::per_microbatch;
  });
  const int each_begin = static_cast<int>(each - plan.calls.begin());
  Meter meter(plan.calls.size());
  for (size_t v = 0; v < graph.values.size(); ++v) {
    const Value& value = graph.values[v];
    if (value.producer.valid()) continue;
    meter.write(plan.sources[v].count, value.type.bytes().count, 0, value.role);
    if (is_persistent(value.role)) meter.read(plan.sources[v].count, last);
    // Rows arrive when `prologue` is through.
    else if (plan.microbatches > 1)
      meter.read(plan.sources[v].count, each_begin);
  }
  for (size_t s = 0; s < plan.calls.size(); ++s) {
    const PlannedCall& call = plan.calls[s];
    const Node& node = graph[call.node];
    const int now = static_cast<int>(s);
    for (const Bytes at : call.inputs) meter.read(at.count, now);
    for (size_t k = 0; k < node.outputs.size(); ++k) {
      if (node.added_into(k).valid()) meter.read(call.outputs[k].count, now);
    }
    if (call.workspace_size.count > 0) {
      meter.write(call.workspace_at.count, call.workspace_size.count, now, Role::workspace);
    }
    for (size_t k = 0; k < node.outputs.size(); ++k) {
      const Value& value = graph[node.outputs[k]];
      meter.write(call.outputs[k].count, value.type.bytes().count, now, value.role);
    }
  }
  for (const ValueId result : graph.results) meter.read(program.address_of(result).count, last);
  return meter.finish(program.touched());
}

}  // namespace thimble
