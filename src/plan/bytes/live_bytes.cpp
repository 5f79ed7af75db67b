#include "plan/bytes/live_bytes.h"

#include <algorithm>

namespace thimble {

std::vector<Bytes> live_by_call(std::span<const BufferUse> buffers) {
  int end = 0;
  for (const BufferUse& use : buffers) end = std::max(end, use.last + 1);
  const size_t calls = static_cast<size_t>(end);
  std::vector<int64_t> change(calls + 1, 0);
  for (const BufferUse& use : buffers) {
    const int64_t size = align_up(use.size).count;
    change[static_cast<size_t>(use.first)] += size;
    change[static_cast<size_t>(use.last) + 1] -= size;
  }
  std::vector<Bytes> live;
  live.reserve(calls);
  int64_t now = 0;
  for (size_t s = 0; s < calls; ++s) live.emplace_back(now += change[s]);
  return live;
}

Bytes most_live(std::span<const BufferUse> buffers) {
  Bytes most;
  for (const Bytes live : live_by_call(buffers)) most = std::max(most, live);
  return most;
}

LiveBytes::LiveBytes(const std::vector<Bytes>& by_call) {
  while (leaves_ < static_cast<int>(by_call.size())) leaves_ *= 2;
  const size_t leaves = static_cast<size_t>(leaves_);
  most_.assign(2 * leaves, 0);
  added_.assign(2 * leaves, 0);
  for (size_t s = 0; s < by_call.size(); ++s) most_[leaves + s] = by_call[s].count;
  for (size_t i = leaves - 1; i > 0; --i) most_[i] = std::max(most_[2 * i], most_[2 * i + 1]);
}

void LiveBytes::add(int first, int last, Bytes bytes) {
  add(1, {0, leaves_ - 1}, {first, last}, bytes.count);
}

Bytes LiveBytes::most(int first, int last) const {
  return Bytes(most(1, {0, leaves_ - 1}, {first, last}));
}

void LiveBytes::add(size_t at, Range here, Range range, int64_t bytes) {
  if (range.last < here.first || here.last < range.first) return;
  if (range.first <= here.first && here.last <= range.last) {
    most_[at] += bytes;
    added_[at] += bytes;
    return;
  }
  const int middle = (here.first + here.last) / 2;
  add(2 * at, {here.first, middle}, range, bytes);
  add(2 * at + 1, {middle + 1, here.last}, range, bytes);
  most_[at] = std::max(most_[2 * at], most_[2 * at + 1]) + added_[at];
}

int64_t LiveBytes::most(size_t at, Range here, Range range) const {
  if (range.last < here.first || here.last < range.first) return INT64_MIN / 2;
  if (range.first <= here.first && here.last <= range.last) return most_[at];
  const int middle = (here.first + here.last) / 2;
  return added_[at] + std::max(most(2 * at, {here.first, middle}, range),
                               most(2 * at + 1, {middle + 1, here.last}, range));
}

}  // namespace thimble
