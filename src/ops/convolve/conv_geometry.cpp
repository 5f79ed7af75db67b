#include "ops/convolve/conv_geometry.h"

#include "base/error.h"
#include "ops/samples.h"

namespace thimble {

ConvGeometry conv_geometry(std::string_view op, const Shape& x, const Shape& w,
                           const Attrs& attrs) {
  user_check(x.rank() == 4, "[{}] wants images [N,H,W,C], got {}", op, to_string(x));
  user_check(w.rank() == 4, "[{}] wants weights [O,kH,kW,C/groups], got {}", op, to_string(w));
  ConvGeometry g{};
  g.stride = attrs.integer("stride", 1);
  g.pad = attrs.integer("pad", 0);
  g.groups = attrs.integer("groups", 1);
  user_check(g.stride >= 1 && g.pad >= 0 && g.groups >= 1,
             "[{}] stride, pad or groups out of range", op);
  g.batch = x[0], g.in_h = x[1], g.in_w = x[2], g.in_c = x[3];
  g.out_c = w[0], g.kernel_h = w[1], g.kernel_w = w[2];
  user_check(g.in_c % g.groups == 0 && g.out_c % g.groups == 0 && w[3] * g.groups == g.in_c,
             "[{}] {} channels and weights {} do not go into {} groups", op, g.in_c, to_string(w),
             g.groups);
  g.fit(op, "kernel", x);
  return g;
}

std::vector<Sample> conv_backward_samples(bool of_data) {
  std::vector<Sample> result;
  for (const ConvCase& c : conv_cases()) {
    Attrs attrs = c.attrs();
    const Shape& missing = of_data ? c.x : c.w;
    attrs.set(of_data ? "in_h" : "kernel_h", missing[1]);
    attrs.set(of_data ? "in_w" : "kernel_w", missing[2]);
    const Shape dy = conv_geometry("conv2d", c.x, c.w, attrs).y();
    result.push_back({.inputs = {{of_data ? c.w : c.x}, {dy}}, .attrs = attrs});
  }
  return and_added(std::move(result));
}

void check_conv_gradient(std::string_view op, const ConvGeometry& g, const Shape& dy) {
  user_check(g.y() == dy, "[{}] the gradient is {}, not {}", op, to_string(dy), to_string(g.y()));
}

const std::array<ConvCase, 6>& conv_cases() {
  static const std::array<ConvCase, 6> cases = {{
      {{2, 5, 6, 3}, {4, 3, 3, 3}, 1, 1, 1},
      {{3, 8, 8, 16}, {32, 3, 3, 16}, 1, 1, 1},
      {{2, 7, 9, 8}, {8, 3, 3, 8}, 2, 1, 1},
      {{2, 8, 8, 16}, {16, 1, 1, 16}, 2, 0, 1},
      {{2, 6, 6, 8}, {12, 3, 3, 4}, 1, 1, 2},
      {{1, 11, 11, 3}, {8, 7, 7, 3}, 2, 3, 1},
  }};
  return cases;
}

}  // namespace thimble
