// Packers assign offsets in one arena to buffers (offline dynamic storage allocation). A packer is
// one file of plan/layout, and the file's name is its registration (see cmake/tables.cmake).
#pragma once

#include <span>
#include <string_view>

#include "plan/plan.h"

namespace thimble {

struct Packer {
  std::string_view name;
  std::string_view summary;
  // Offsets such that buffers whose [first, last] overlap share no byte, every offset a multiple of
  // kArenaAlignment. A search may stop at an arena of `good_enough`; callers pass the live peak,
  // which no layout is below. Deterministic, and near-linear in practice.
  Layout (*pack)(std::span<const BufferUse> buffers, Bytes good_enough) = nullptr;
  // 0: a pass or two over the buffers. Higher: a search, tried after all lower ones.
  int effort = 0;
};

std::span<const Packer* const> all_packers();

// The largest sum of (aligned) sizes live at one call, and that call: no layout can be smaller.
struct LivePeak {
  Bytes bytes;
  int call = 0;
};
LivePeak live_peak(std::span<const BufferUse> buffers);

// Runs the packers, least effort first, until one reaches the live peak, or comes within a
// thousandth of it and the next would search. The smallest result wins, and of equal ones the
// earlier.
struct Packed {
  Layout layout;
  std::string_view packer;
};
Packed pack_smallest(std::span<const BufferUse> buffers);

}  // namespace thimble
