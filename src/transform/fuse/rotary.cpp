// x * cos + turned(x) * sin, where turned(x) is (-far, near) of the halves of each head, and the
// tables depend on the position alone. Whatever they were computed from (a base, a scaling) stays
// in the tables.
#include "transform/fuse.h"
#include "transform/fusing.h"

namespace thimble {
namespace {

const Form& written_out() {
  static const Form turned = made(
      "concat", {scaled(-1, made("slice", {any("x")}, "far")), made("slice", {any("x")}, "near")},
      "turned");
  static const Form form =
      made("add", {made("mul", {turned, any("sine")}), made("mul", {any("x"), any("cosine")})});
  return form;
}

// The axis that a table [...,D] of positions goes along in x; -1: there is no one axis.
int positions_of(const Shape& table, const Shape& x) {
  if (table.rank() < 1 || table.rank() > x.rank() || table.back() != x.back()) return -1;
  const int missing = x.rank() - table.rank();
  int found = -1;
  for (int axis = missing; axis < x.rank() - 1; ++axis) {
    if (table[axis - missing] == 1) continue;
    if (found >= 0 || table[axis - missing] != x[axis]) return -1;
    found = axis;
  }
  return found;
}

bool fuse_rotary(Fusing& f, NodeId root) {
  const std::optional<Match> m = f.match(root, written_out());
  if (!m) return false;
  const ValueId y = f.graph()[root].outputs[0], x = (*m)["x"];
  const Shape shape = f.shape(x);
  const int rank = shape.rank();
  if (rank < 2 || f.shape(y) != shape || shape.back() % 2 != 0) return false;
  const int64_t size = shape.back();
  const auto half = [&](std::string_view name, int64_t begin) {
    const Attrs& slice = f.maker((*m)[name])->attrs;
    return slice.integer("axis") == rank - 1 && slice.integer("begin") == begin &&
           slice.integer("end") == begin + size / 2;
  };
  const bool halves = half("near", 0) && half("far", size / 2) &&
                      f.maker((*m)["turned"])->attrs.integer("axis") == rank - 1;
  const int axis = positions_of(f.shape((*m)["cosine"]), shape);
  if (!halves || axis < 0 || positions_of(f.shape((*m)["sine"]), shape) != axis) return false;
  if (f.trains((*m)["cosine"]) || f.trains((*m)["sine"])) return false;
  const DType kept = f.type(y).dtype;
  const DType exact = kept == DType::f64 ? DType::f64 : DType::f32;
  const int64_t positions = shape[axis], heads = shape.product(axis + 1, rank - 1);
  const auto table = [&](ValueId value) {
    return f.reshaped(f.in_dtype(f.behind_casts(value), exact), {positions, size});
  };
  const ValueId rows =
      f.reshaped(f.in_dtype(x, kept), {shape.product(0, axis), positions, heads * size});
  const ValueId cosine = table((*m)["cosine"]), sine = table((*m)["sine"]);
  f.replace(y, f.apply("rotary", {rows, cosine, sine}, {{"heads", heads}})[0]);
  return true;
}

}  // namespace

extern const PatternDef pattern_rotary{.name = "rotary", .roots = {"add"}, .fuse = fuse_rotary};

}  // namespace thimble
