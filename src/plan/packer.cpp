#include "plan/packer.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "plan/layout/layout_limits.h"

namespace thimble {
LivePeak live_peak(std::span<const BufferUse> buffers) {
  // At a call, what is born comes before what dies: `last` is inclusive.
  std::vector<std::pair<int64_t, int64_t>> changes;
  changes.reserve(2 * buffers.size());
  for (const BufferUse& use : buffers) {
    const int64_t size = align_up(use.size).count;
    changes.emplace_back(use.first, size);
    changes.emplace_back(int64_t(use.last) + 1, -size);
  }
  std::sort(changes.begin(), changes.end());
  LivePeak peak;
  int64_t live = 0;
  for (size_t i = 0; i < changes.size(); ++i) {
    live += changes[i].second;
    const bool step_complete = i + 1 == changes.size() || changes[i + 1].first != changes[i].first;
    if (step_complete && live > peak.bytes.count) {
      peak = {.bytes = Bytes(live), .call = int(changes[i].first)};
    }
  }
  return peak;
}

Packed pack_smallest(std::span<const BufferUse> buffers) {
  const Bytes peak = live_peak(buffers).bytes;
  std::vector<const Packer*> packers(all_packers().begin(), all_packers().end());
  std::stable_sort(packers.begin(), packers.end(),
                   [](const Packer* a, const Packer* b) { return a->effort < b->effort; });
  Packed best;
  for (const Packer* packer : packers) {
    const Bytes content =
        packer->effort > 0 ? peak + Bytes(peak.count / kLayoutLimits.negligible_gap) : peak;
    if (!best.packer.empty() && best.layout.arena <= content) break;
    Layout layout = packer->pack(buffers, content);
    if (best.packer.empty() || layout.arena < best.layout.arena) {
      best = {.layout = std::move(layout), .packer = packer->name};
    }
  }
  return best;
}

}  // namespace thimble
