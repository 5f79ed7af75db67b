// The geometry of rotary: x [rows, positions, heads * size], and tables [positions, size] where the
// angles are not computed.
#pragma once

#include <cmath>

#include "ops/checks.h"

namespace thimble {

struct RotaryGeometry {
  int64_t rows, positions, heads, rotated, size;
  int64_t offset;
  double base;
  bool inverse;
  bool tables;         // cosines and sines are inputs 1 and 2
  bool continued;      // the last input says at which position each row begins
  int64_t table_rows;  // positions that tables have

  // Of position t of row n. `first`: the last input, or null. Positions beyond a table are its last.
  constexpr int64_t place(const int32_t* first, int64_t n, int64_t t) const {
    const int64_t at = (first == nullptr ? offset : first[n]) + t;
    return !tables ? at : at < 0 ? 0 : at < table_rows ? at : table_rows - 1;
  }

  // By what the angle of pair d grows from one position to the next.
  double frequency(int64_t d) const {
    return std::pow(base, -2 * static_cast<double>(d) / static_cast<double>(size));
  }
};

inline RotaryGeometry rotary_geometry(std::span<const TensorType> inputs, const Attrs& attrs) {
  const TensorType& x = inputs[0];
  check_floating_rank("rotary", "activations [N,T,C]", x, 3);
  RotaryGeometry g{};
  g.rows = x.shape[0];
  g.positions = x.shape[1];
  g.heads = attrs.integer("heads");
  user_check(g.heads >= 1 && x.shape[2] % (2 * g.heads) == 0,
             "[rotary] {} channels do not make {} heads of an even size", x.shape[2], g.heads);
  g.size = x.shape[2] / g.heads;
  g.rotated = attrs.integer("rotated", g.heads);
  user_check(g.rotated >= 0 && g.rotated <= g.heads, "[rotary] {} of {} heads cannot be turned",
             g.rotated, g.heads);
  g.offset = attrs.integer("offset", 0);
  g.base = attrs.real("base", 10000);
  user_check(g.base > 0, "[rotary] wants a base above 0, got {}", g.base);
  g.inverse = attrs.integer("inverse", 0) != 0;
  g.continued = attrs.integer("continued", 0) != 0;
  g.tables = inputs.size() > (g.continued ? 2 : 1);
  g.table_rows = g.tables && inputs[1].shape.rank() == 2 ? inputs[1].shape[0] : 0;
  return g;
}

}  // namespace thimble
