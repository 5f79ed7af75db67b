// rotary(x [N,T,heads*D]) -> y like x: in each head, the pair (d, d + D/2) of position t is turned
// by the angle (offset + t) * base^(-2d/D). Attrs heads, rotated (how many of the first heads are
// turned; the others pass: all), base (10000), offset (0), inverse (0; 1 turns back). The gradient
// is the same op, turning the other way; nothing is saved.
//
// rotary(x, cosine [P,D], sine [P,D]): angles of P >= T positions that were computed elsewhere:
//   y_d     = x_d cosine_d - x_far sine_d
//   y_far   = x_far cosine_far + x_d sine_far          far = d + D/2
// Tables have the statistics dtype, and no gradient. inverse = 1 is the transposed map then.
//
// Attr continued = 1 adds a last input, i32 [N]: the position at which each row begins, in place of
// `offset` (a KV cache: rows continue what came before).
#include <array>
#include <cmath>

#include "graph/builder.h"
#include "ops/attend/rotary_geometry.h"
#include "ops/reference.h"
#include "ops/row_rules.h"
#include "ops/work.h"

namespace thimble {
namespace {

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs& attrs) {
  const bool continued = attrs.integer("continued", 0) != 0;
  const size_t sources = inputs.size() - size_t{continued};
  user_check(sources == 1 || sources == 3,
             "[rotary] wants x, or x and tables of cosines and sines, got {} inputs", sources);
  const RotaryGeometry g = rotary_geometry(inputs, attrs);
  const int64_t rows =
      continued ? std::max<int64_t>(1, g.table_rows) : std::max(g.positions, g.table_rows);
  const TensorType table = {{rows, g.size}, statistics_dtype(inputs[0].dtype)};
  for (size_t i = 1; i < sources; ++i) check_type("rotary", "table", inputs[i], table);
  if (continued) check_type("rotary", "first position", inputs.back(), {{g.rows}, DType::i32});
  user_check(g.offset == 0 || !(g.tables || continued),
             "[rotary] tables begin at their first position");
  return {inputs[0]};
}

void gradient(GradientBuilder& g) {
  if (!g.upstream().valid() || !g.wants(0)) return;
  Attrs back = g.attrs();
  back.set("inverse", int64_t{g.attrs().integer("inverse", 0) == 0});
  std::vector<ValueId> inputs = g.node().inputs;
  inputs[0] = g.upstream();
  g.give(0, g.build().op("rotary", inputs, back));
}

// The cosine and sine at both ends of a pair.
template <class Real>
struct Turn {
  Real near_cosine, near_sine, far_cosine, far_sine;
};

template <class Real>
Turn<Real> turn_of(const KernelArgs& args, const RotaryGeometry& g, int64_t position, int64_t d) {
  if (g.tables) {
    const int64_t near = position * g.size + d, far = near + g.size / 2;
    const auto *cosine = args.inputs[1].as<Real>(), *sine = args.inputs[2].as<Real>();
    const Turn<Real> turn = {cosine[near], sine[near], cosine[far], sine[far]};
    return g.inverse
               ? Turn<Real>{turn.near_cosine, -turn.far_sine, turn.far_cosine, -turn.near_sine}
               : turn;
  }
  const double angle = static_cast<double>(position) * g.frequency(d);
  const Real cosine = static_cast<Real>(std::cos(angle));
  const Real sine = static_cast<Real>(g.inverse ? -std::sin(angle) : std::sin(angle));
  return {cosine, sine, cosine, sine};
}

void reference(const KernelArgs& args) {
  std::array<TensorType, 4> types;
  for (size_t i = 0; i < args.inputs.size(); ++i) types[i] = args.inputs[i].type;
  const RotaryGeometry g = rotary_geometry(std::span(types).first(args.inputs.size()), *args.attrs);
  const int32_t* const first = g.continued ? args.inputs.back().as<const int32_t>() : nullptr;
  with_float_type(args.inputs[0].type.dtype, [&]<class T>(TypeTag<T>) {
    using Real = Accumulator<T>;
    const T* x = args.inputs[0].as<T>();
    T* y = args.outputs[0].as<T>();
    for (int64_t row = 0; row < g.rows * g.positions; ++row) {
      for (int64_t c = g.rotated * g.size; c < g.heads * g.size; ++c) {
        y[row * g.heads * g.size + c] = x[row * g.heads * g.size + c];
      }
      const int64_t place = g.place(first, row / g.positions, row % g.positions);
      for (int64_t d = 0; d < g.size / 2; ++d) {
        const Turn<Real> turn = turn_of<Real>(args, g, place, d);
        for (int64_t head = 0; head < g.rotated; ++head) {
          const int64_t at = (row * g.heads + head) * g.size + d, far = at + g.size / 2;
          const Real a = widen(x[at]), b = widen(x[far]);
          store(y, at, a * turn.near_cosine - b * turn.near_sine);
          store(y, far, b * turn.far_cosine + a * turn.far_sine);
        }
      }
    }
  });
}

std::vector<Sample> samples() {
  const auto sample = [](Shape x, int64_t heads, int64_t rotated, bool inverse, int64_t offset) {
    return Sample{.inputs = {{x}},
                  .attrs = {{"heads", heads},
                            {"rotated", rotated},
                            {"inverse", int64_t{inverse}},
                            {"offset", offset}},
                  .differentiate = {0}};
  };
  const auto of_tables = [&](Shape x, int64_t heads, int64_t rotated, bool inverse) {
    Sample one = sample(x, heads, rotated, inverse, 0);
    const TensorType table = {{x[1], x[2] / heads}};
    one.inputs = {{x}, table, table};
    return one;
  };
  // Tables of more positions than a row has, which begins at any of them.
  const auto continued = [&](Sample one, int64_t positions) {
    one.attrs.set("continued", int64_t{1});
    for (size_t i = 1; i < one.inputs.size(); ++i)
      one.inputs[i].shape = {positions, one.inputs[i].shape[1]};
    one.fills.resize(one.inputs.size());
    one.inputs.push_back({{one.inputs[0].shape[0]}, DType::i32});
    one.fills.push_back({Fill::Kind::labels, 0, static_cast<double>(positions)});
    return one;
  };
  return {sample({2, 5, 12}, 3, 3, false, 0),
          sample({2, 7, 32}, 1, 1, true, 3),
          sample({1, 6, 96}, 6, 4, false, 0),
          sample({3, 1, 4}, 2, 1, true, 10),
          of_tables({2, 5, 12}, 3, 3, false),
          of_tables({2, 7, 32}, 1, 1, true),
          of_tables({1, 6, 96}, 6, 4, true),
          continued(sample({3, 4, 12}, 3, 2, false, 0), 50),
          continued(of_tables({3, 4, 32}, 2, 2, false), 9),
          continued(of_tables({2, 1, 96}, 6, 6, true), 70)};
}

RowFlow rows(const RowCall& call, size_t output) {
  std::array<int, 4> axes = {2, -1, -1, -1};
  if (call.attrs.integer("continued", 0) != 0) axes[call.inputs.size() - 1] = 0;
  return rows_of_joint_slices(call, output, std::span(axes).first(call.inputs.size()));
}

}  // namespace

extern const OpDef op_rotary{
    .name = "rotary",
    .summary = "turns pairs of channels by angles that grow with the position",
    .infer = infer,
    .gradient = gradient,
    .reference = reference,
    .work = flops_per_input<4>,
    .samples = samples,
    .rows = rows,
    .in_place = {{0, 0}},
};

}  // namespace thimble
