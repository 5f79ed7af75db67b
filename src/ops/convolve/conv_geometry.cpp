#include "ops/convolve/conv_geometry.h"

#include "base/error.h"
#include "ops/samples.h"

namespace thimble {

ConvGeometry conv_geometry(std::string_view op, const Shape& x, const Shape& w,
                           const Attrs& attrs) {
  user_check(x.rank() == 4, "[{}] wants images [N,H,W,C], got {}", op, to_string(x));
  user_check(w.rank() == 4, "[{}] wants weights [O,kH,kW,C/groups], got {}", op, to_string(w));
  ConvGeometry g{};
  g.stride_h = attrs.integer("stride", 1), g.stride_w = attrs.integer("stride_w", g.stride_h);
  g.pad_h = attrs.integer("pad", 0), g.pad_w = attrs.integer("pad_w", g.pad_h);
  g.dilation_h = attrs.integer("dilation", 1);
  g.dilation_w = attrs.integer("dilation_w", g.dilation_h);
  g.groups = attrs.integer("groups", 1);
  constexpr int64_t kMost = 1 << 20;
  const auto within = [](int64_t least, int64_t one, int64_t other) {
    return one >= least && one <= kMost && other >= least && other <= kMost;
  };
  user_check(within(1, g.stride_h, g.stride_w) && within(0, g.pad_h, g.pad_w) &&
                 within(1, g.dilation_h, g.dilation_w) && g.groups >= 1,
             "[{}] stride, pad, dilation or groups out of range", op);
  g.batch = x[0], g.in_h = x[1], g.in_w = x[2], g.in_c = x[3];
  g.out_c = w[0], g.kernel_h = w[1], g.kernel_w = w[2];
  user_check(g.in_c % g.groups == 0 && g.out_c % g.groups == 0 && w[3] * g.groups == g.in_c,
             "[{}] {} channels and weights {} do not go into {} groups", op, g.in_c, to_string(w),
             g.groups);
  user_check(within(1, g.kernel_h, g.kernel_w), "[{}] a kernel of {}x{} is none", op, g.kernel_h,
             g.kernel_w);
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
    if (of_data) result.back().differentiate = {0, 1};
  }
  return and_added(std::move(result));
}

void check_conv_gradient(std::string_view op, const ConvGeometry& g, const Shape& dy) {
  user_check(g.y() == dy, "[{}] the gradient is {}, not {}", op, to_string(dy), to_string(g.y()));
}

Attrs ConvCase::attrs() const {
  Attrs attrs = {{"stride", stride}, {"pad", pad}, {"groups", groups}};
  if (dilation != 1) attrs.set("dilation", dilation);
  if (stride_w > 0) attrs.set("stride_w", stride_w);
  if (pad_w >= 0) attrs.set("pad_w", pad_w);
  return attrs;
}

const std::array<ConvCase, 11>& conv_cases() {
  static const std::array<ConvCase, 11> cases = {{
      {{2, 5, 6, 3}, {4, 3, 3, 3}, 1, 1, 1},
      {{3, 8, 8, 16}, {32, 3, 3, 16}, 1, 1, 1},
      {{2, 7, 9, 8}, {8, 3, 3, 8}, 2, 1, 1},
      {{2, 8, 8, 16}, {16, 1, 1, 16}, 2, 0, 1},
      {{2, 6, 6, 8}, {12, 3, 3, 4}, 1, 1, 2},
      {{1, 11, 11, 3}, {8, 7, 7, 3}, 2, 3, 1},
      {{2, 9, 8, 16}, {16, 3, 3, 16}, 1, 2, 1, 2},
      {{2, 8, 9, 16}, {16, 3, 3, 1}, 2, 1, 16},
      {{2, 7, 7, 32}, {32, 5, 5, 1}, 1, 2, 32},
      {{2, 9, 15, 48}, {48, 7, 7, 1}, 1, 3, 48},
      {{2, 1, 12, 8}, {12, 1, 3, 8}, 1, 0, 1, 1, 2, 1},
  }};
  return cases;
}

}  // namespace thimble
