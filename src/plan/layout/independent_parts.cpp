#include "plan/layout/independent_parts.h"

#include <algorithm>
#include <utility>

#include "plan/layout/layout_limits.h"

namespace thimble {
namespace {

// Renumbers time so that only slots remain: a call where something is born after something died.
// REQUIRES: items sorted by first, not empty.
void compress_time(Part& part) {
  const int begin = part.items.front().first;
  int end = begin;
  for (const PartItem& item : part.items) end = std::max(end, item.last + 1);
  std::vector<char> born(end - begin, 0), dies(end - begin, 0);
  for (const PartItem& item : part.items) {
    born[item.first - begin] = 1;
    dies[item.last - begin] = 1;
  }
  std::vector<int> slot_of(end - begin, 0);
  int slot = 0;
  bool died = false;
  for (int t = 0; t < end - begin; ++t) {
    if (born[t] && died) {
      ++slot;
      died = false;
    }
    died = died || dies[t];
    slot_of[t] = slot;
  }
  for (PartItem& item : part.items) {
    item.first = slot_of[item.first - begin];
    item.last = slot_of[item.last - begin];
  }
  part.slots = slot + 1;
}

// All buffers of positive size, with calls replaced by their rank so that huge call numbers cost
// nothing.
Part whole_problem(std::span<const BufferUse> buffers) {
  std::vector<int> births;
  births.reserve(buffers.size());
  for (const BufferUse& use : buffers) births.push_back(use.first);
  std::sort(births.begin(), births.end());
  births.erase(std::unique(births.begin(), births.end()), births.end());
  const auto last_birth_by = [&](int call) {
    return int(std::upper_bound(births.begin(), births.end(), call) - births.begin()) - 1;
  };
  Part part;
  for (size_t b = 0; b < buffers.size(); ++b) {
    const BufferUse& use = buffers[b];
    if (use.size.count <= 0) continue;
    part.items.push_back({.size = align_up(use.size).count,
                          .first = last_birth_by(use.first),
                          .last = last_birth_by(std::max(use.first, use.last)),
                          .buffer = int(b)});
  }
  std::stable_sort(part.items.begin(), part.items.end(),
                   [](const PartItem& a, const PartItem& b) { return a.first < b.first; });
  return part;
}

// Splits the problem into parts that no cut divides further; slabs get their offset at once.
std::vector<Part> cut_into_parts(std::span<const BufferUse> buffers, std::vector<Bytes>& offsets) {
  std::vector<Part> parts;
  std::vector<Part> pending;
  pending.push_back(whole_problem(buffers));
  int64_t visits_left = kLayoutLimits.visits_per_buffer * int64_t(buffers.size());
  while (!pending.empty()) {
    Part part = std::move(pending.back());
    pending.pop_back();
    if (part.items.empty()) continue;
    compress_time(part);
    visits_left -= int64_t(part.items.size());

    Part rest{.base = part.base, .slots = 0, .items = {}};
    for (const PartItem& item : part.items) {
      if (item.width() < part.slots) continue;
      offsets[item.buffer] = Bytes(rest.base);
      rest.base += item.size;
    }
    std::vector<Part> pieces;
    int end = -1;
    for (const PartItem& item : part.items) {
      if (item.width() == part.slots) continue;
      if (item.first > end) pieces.push_back({.base = rest.base, .slots = 0, .items = {}});
      pieces.back().items.push_back(item);
      end = std::max(end, item.last);
    }
    const bool whole = pieces.size() == 1 && rest.base == part.base;
    for (Part& piece : pieces) {
      if (whole || visits_left <= 0) {
        compress_time(piece);
        parts.push_back(std::move(piece));
      } else {
        pending.push_back(std::move(piece));
      }
    }
  }
  return parts;
}

}  // namespace

int64_t live_peak(const Part& part) {
  std::vector<int64_t> change(part.slots + 1, 0);
  for (const PartItem& item : part.items) {
    change[item.first] += item.size;
    change[item.last + 1] -= item.size;
  }
  int64_t live = 0, peak = 0;
  for (const int64_t c : change) peak = std::max(peak, live += c);
  return peak;
}

int64_t highest_end(const Part& part, std::span<const int64_t> offsets) {
  int64_t end = 0;
  for (size_t i = 0; i < part.items.size(); ++i) {
    end = std::max(end, offsets[i] + part.items[i].size);
  }
  return end;
}

Layout pack_by_parts(std::span<const BufferUse> buffers, Bytes good_enough,
                     const PackPart& pack_part) {
  Layout layout;
  layout.offsets.resize(buffers.size());
  for (const Part& part : cut_into_parts(buffers, layout.offsets)) {
    const int64_t target = std::max(good_enough.count - part.base, live_peak(part));
    const std::vector<int64_t> offsets = pack_part(part, target);
    for (size_t i = 0; i < part.items.size(); ++i) {
      layout.offsets[part.items[i].buffer] = Bytes(part.base + offsets[i]);
    }
  }
  for (size_t b = 0; b < buffers.size(); ++b) {
    layout.arena = std::max(layout.arena, layout.offsets[b] + align_up(buffers[b].size));
  }
  return layout;
}

}  // namespace thimble
