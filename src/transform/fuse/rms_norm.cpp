// gamma * (x / sqrt(mean(x^2) + epsilon)), of each row of the last axis. The op sums in f32
// whatever x is kept in, and reads gamma in f32.
#include "transform/fuse.h"
#include "transform/fusing.h"

namespace thimble {
namespace {

const Form& written_out() {
  static const Form shifted =
      mapped("shift",
             mean(either({mapped("square", any("x")), made("mul", {any("x"), any("x")})}), "mean"),
             "shifted");
  static const Form form = made(
      "mul",
      {any("gamma"), either({made("mul", {any("x"), mapped("rsqrt", shifted)}),
                             made("mul", {any("x"), mapped("reciprocal", mapped("sqrt", shifted))}),
                             made("div", {any("x"), mapped("sqrt", shifted)})})});
  return form;
}

bool fuse_norm(Fusing& f, NodeId root) {
  const std::optional<Match> m = f.match(root, written_out());
  if (!m) return false;
  const ValueId y = f.graph()[root].outputs[0], gamma = (*m)["gamma"];
  const Shape x = f.shape((*m)["x"]);
  const int64_t columns = x.rank() == 0 ? 0 : x.back();
  const Attrs& mean = f.maker((*m)["mean"])->attrs;
  const double epsilon = f.maker((*m)["shifted"])->attrs.real("a", 0);
  const bool of_rows = columns > 0 && mean.integers("axes") == std::vector<int64_t>{x.rank() - 1} &&
                       mean.integer("keep_dims", 0) != 0;
  const bool by_channel = f.shape(gamma).rank() > 0 && f.shape(gamma).back() == columns &&
                          f.shape(gamma).elements() == columns;
  if (!of_rows || !by_channel || f.shape(y) != x || epsilon <= 0) return false;
  const DType kept = f.type(y).dtype;
  const DType scale = kept == DType::f64 ? DType::f64 : DType::f32;
  const ValueId values = f.in_dtype((*m)["x"], kept);
  const ValueId scales = f.reshaped(f.in_dtype(gamma, scale), {columns});
  f.replace(y, f.apply("rms_norm", {values, scales}, {{"epsilon", epsilon}})[0]);
  return true;
}

}  // namespace

extern const PatternDef pattern_rms_norm{.name = "rms_norm", .roots = {"mul"}, .fuse = fuse_norm};

}  // namespace thimble
