#include "ops/convolve/pool_geometry.h"

#include "ops/samples.h"

namespace thimble {

PoolGeometry pool_geometry(const Shape& x, const Shape& y, const Attrs& attrs) {
  PoolGeometry g{};
  g.batch = x[0], g.in_h = x[1], g.in_w = x[2], g.channels = x[3];
  g.out_h = y[1], g.out_w = y[2];
  g.kernel_h = g.kernel_w = attrs.integer("kernel");
  g.stride_h = g.stride_w = attrs.integer("stride", g.kernel_h);
  g.pad_h = g.pad_w = attrs.integer("pad", 0);
  return g;
}

PoolGeometry pool_geometry(std::string_view op, const Shape& x, const Attrs& attrs) {
  user_check(x.rank() == 4, "[{}] wants images [N,H,W,C], got {}", op, to_string(x));
  PoolGeometry g = pool_geometry(x, x, attrs);
  user_check(g.kernel_h >= 1 && g.stride_h >= 1 && g.pad_h >= 0,
             "[{}] kernel, stride or pad out of range", op);
  user_check(2 * g.pad_h <= g.kernel_h, "[{}] pad {} is more than half of kernel {}", op, g.pad_h,
             g.kernel_h);
  g.fit(op, "window", x);
  return g;
}

PoolGeometry pool_backward_geometry(std::string_view op, const Shape& dy, const Attrs& attrs) {
  user_check(dy.rank() == 4, "[{}] wants a gradient [N,H',W',C], got {}", op, to_string(dy));
  const Shape x = {dy[0], attrs.integer("in_h"), attrs.integer("in_w"), dy[3]};
  const PoolGeometry g = pool_geometry(op, x, attrs);
  user_check(g.y() == dy, "[{}] the gradient is {}, not {}", op, to_string(dy), to_string(g.y()));
  return g;
}

Attrs pool_backward_attrs(const Shape& x, const Attrs& attrs) {
  Attrs result = attrs;
  result.set("in_h", x[1]).set("in_w", x[2]);
  return result;
}

Work pool_work(const Signature& s) {
  return {pool_geometry(s.op->name, s.inputs[0].shape, s.attrs).flops(), 0};
}

Work pool_backward_work(const Signature& s) {
  return {pool_backward_geometry(s.op->name, s.inputs.back().shape, s.attrs).flops(), 0};
}

std::vector<Sample> pool_samples() {
  std::vector<Sample> result;
  for (const PoolCase& c : pool_cases()) {
    result.push_back({.inputs = {{c.x}}, .attrs = c.attrs(), .differentiate = {0}});
  }
  return result;
}

std::vector<Sample> pool_backward_samples(bool indexed) {
  std::vector<Sample> result;
  for (const PoolCase& c : pool_cases()) {
    const Shape dy = pool_geometry("a pool", c.x, c.attrs()).y();
    Sample sample = {.inputs = {{dy}}, .attrs = pool_backward_attrs(c.x, c.attrs())};
    if (indexed) {
      sample.inputs = {{dy, DType::u8}, {dy}};
      sample.fills = {{Fill::Kind::labels, 0, static_cast<double>(c.kernel * c.kernel)}};
    }
    result.push_back(std::move(sample));
  }
  return and_added(std::move(result));
}

const std::vector<PoolCase>& pool_cases() {
  static const std::vector<PoolCase> cases = {
      {{2, 8, 8, 16}, 2, 2, 0},
      {{2, 9, 7, 3}, 3, 2, 1},
      {{1, 6, 6, 5}, 3, 1, 1},
      {{2, 7, 10, 8}, 3, 3, 0},
  };
  return cases;
}

}  // namespace thimble
