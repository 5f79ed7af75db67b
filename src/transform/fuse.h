// Fusion of nodes that spell one of our ops. Networks from outside write a norm as a square, a mean
// and a root, and a rotation as slices, products and a sum. Such nodes become the op before
// autodiff: fewer values are kept, memory is passed over less often, and sums stay in f32.
//
//   x ─▶ square ─▶ mean ─▶ + eps ─▶ rsqrt ─▶ · x ─▶ · gamma     becomes     x, gamma ─▶ rms_norm
//
// Patterns are one file each in fuse/, written with transform/fusing.h; the file's name is the
// registration (cmake/tables.cmake).
#pragma once

#include <array>
#include <map>
#include <span>
#include <string_view>
#include <vector>

#include "graph/graph.h"

namespace thimble {

class Fusing;

struct PatternDef {
  std::string_view name;                  // = file name = table entry
  std::array<std::string_view, 2> roots;  // ops of the last node of the pattern
  // Replaces the nodes that end in `root`, if they match the pattern.
  bool (*fuse)(Fusing& fusing, NodeId root) = nullptr;
};

// The generated table, in name order.
std::span<const PatternDef* const> all_patterns();

struct Fused {
  std::map<std::string_view, int> counts;  // by pattern: how often
  std::vector<ValueId> now;  // by old value id: the new id, or invalid; empty: nothing changed
};

// REQUIRES: a forward graph. `read`: values that must survive besides results and sources. Every
// pattern is tried at each node once, in the nodes' order.
Fused fuse(Graph& graph, std::span<const ValueId> read = {});

}  // namespace thimble
