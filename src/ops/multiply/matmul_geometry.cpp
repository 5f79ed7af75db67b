#include "ops/multiply/matmul_geometry.h"

#include <algorithm>

#include "base/error.h"

namespace thimble {

MatmulGeometry matmul_geometry(const Shape& a, const Shape& b, const Attrs& attrs) {
  const auto fits = [&](bool holds, std::string_view why) {
    if (!holds) user_error("[matmul] {} and {}: {}", to_string(a), to_string(b), why);
  };
  fits(a.rank() >= 2 && b.rank() >= 2, "both want at least two axes");
  MatmulGeometry g{};
  g.transpose_a = attrs.integer("transpose_a", 0) != 0;
  g.transpose_b = attrs.integer("transpose_b", 0) != 0;
  g.shared = b.rank() == 2 && a.rank() > 2;
  g.batch = a.product(0, a.rank() - 2);
  g.m = g.transpose_a ? a.back(1) : a.back(2);
  g.k = g.transpose_a ? a.back(2) : a.back(1);
  g.n = g.transpose_b ? b.back(2) : b.back(1);
  fits((g.transpose_b ? b.back(1) : b.back(2)) == g.k, "the inner extents differ");
  if (g.shared) {
    // Its gradients are no plain matmuls.
    fits(!g.transpose_a, "transpose_a does not go with one matrix for a whole batch");
  } else {
    fits(std::ranges::equal(a.dims().first(static_cast<size_t>(a.rank()) - 2),
                            b.dims().first(static_cast<size_t>(b.rank()) - 2)),
         "the leading extents differ");
  }
  std::array<int64_t, Shape::kMaxRank> dims{};
  std::ranges::copy(a.dims(), dims.begin());
  dims[static_cast<size_t>(a.rank()) - 2] = g.m;
  dims[static_cast<size_t>(a.rank()) - 1] = g.n;
  g.y = Shape(std::span<const int64_t>(dims.data(), static_cast<size_t>(a.rank())));
  return g;
}

}  // namespace thimble
