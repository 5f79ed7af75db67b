#include "plan/packer.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "plan/live_bytes.h"

namespace thimble {
namespace {

// A gap of less than this part of the live peak is not worth a search.
constexpr int64_t kNegligible = 1000;

}  // namespace

LivePeak live_peak(std::span<const BufferUse> buffers) {
  const std::vector<Bytes> live = live_by_step(buffers);
  LivePeak peak;
  for (size_t s = 0; s < live.size(); ++s) {
    if (live[s] > peak.bytes) peak = {.bytes = live[s], .step = static_cast<int>(s)};
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
