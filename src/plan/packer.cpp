#include "plan/packer.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace thimble {
namespace {

// A gap of less than this part of the live peak is not worth a search.
constexpr int64_t kNegligible = 1000;

}  // namespace

LivePeak live_peak(std::span<const BufferUse> buffers) {
  int end = 0;
  for (const BufferUse& use : buffers) end = std::max(end, use.last + 1);
  std::vector<int64_t> change(static_cast<size_t>(end) + 1, 0);  // `last` is inclusive
  for (const BufferUse& use : buffers) {
    const int64_t size = align_up(use.size).count;
    change[static_cast<size_t>(use.first)] += size;
    change[static_cast<size_t>(use.last) + 1] -= size;
  }
  LivePeak peak;
  int64_t live = 0;
  for (int step = 0; step < end; ++step) {
    live += change[static_cast<size_t>(step)];
    if (live > peak.bytes.count) peak = {.bytes = Bytes(live), .step = step};
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
    const Bytes content = packer->effort > 0 ? peak + Bytes(peak.count / kNegligible) : peak;
    if (!best.packer.empty() && best.layout.arena <= content) break;
    Layout layout = packer->pack(buffers, content);
    if (best.packer.empty() || layout.arena < best.layout.arena) {
      best = {.layout = std::move(layout), .packer = packer->name};
    }
  }
  return best;
}

}  // namespace thimble
