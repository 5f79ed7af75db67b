// gelu as files write it: by its tanh approximation, x / 2 * (1 + tanh(s * (x + c * x^3))), or by
// erf, x * (1 + erf(x / sqrt(2))) / 2. The gradient reads x alone.
#include <numbers>
#include <string>

#include "transform/fuse.h"
#include "transform/fusing.h"

namespace thimble {
namespace {

// x * above / 2, whichever is halved first.
Form halved(const Form& above) {
  const Form x = any("x");
  return either({made("mul", {scaled(0.5, x), above}), scaled(0.5, made("mul", {x, above})),
                 made("mul", {x, scaled(0.5, above)})});
}

const Form& by_tanh() {
  constexpr double kScale = 0.79788456080286535588, kCube = 0.044715;  // sqrt(2 / pi)
  static const Form x = any("x");
  static const Form cube = either({mapped("pow", 3, x), made("mul", {x, mapped("square", x)}),
                                   made("mul", {x, made("mul", {x, x})})});
  static const Form inner = scaled(kScale, made("add", {x, scaled(kCube, cube)}));
  static const Form form = halved(mapped("shift", 1, made("tanh", {inner})));
  return form;
}

const Form& by_erf() {
  static const Form form =
      halved(mapped("shift", 1, mapped("erf", scaled(std::numbers::sqrt2 / 2, any("x")))));
  return form;
}

bool fuse_gelu(Fusing& f, NodeId root) {
  for (const bool tanh : {true, false}) {
    const std::optional<Match> m = f.match(root, tanh ? by_tanh() : by_erf());
    if (!m) continue;
    const ValueId y = f.graph()[root].outputs[0];
    if (f.shape((*m)["x"]) != f.shape(y)) return false;
    const ValueId x = f.in_dtype((*m)["x"], f.type(y).dtype);
    f.replace(y, f.apply("gelu", {x}, {{"approximate", std::string(tanh ? "tanh" : "none")}})[0]);
    return true;
  }
  return false;
}

}  // namespace

extern const PatternDef pattern_gelu{.name = "gelu", .roots = {"mul", "scale"}, .fuse = fuse_gelu};

}  // namespace thimble
