// affine(x [...,K], w [N,K], bias [N] [, addend [...,N]]) -> y [...,N] = x w' + bias [+ addend],
// rounded once: the sums that a matmul, a bias_act and an add would each round.
#include <array>
#include <numeric>

#include "ops/checks.h"
#include "ops/multiply/stacked_rows.h"
#include "ops/reduce/last_axis.h"
#include "ops/reference.h"
#include "ops/row_rules.h"
#include "ops/shape/strided.h"

namespace thimble {
namespace {

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs&) {
  user_check(inputs.size() == 3 || inputs.size() == 4,
             "[affine] wants x, w, bias and maybe an addend, got {} inputs", inputs.size());
  const TensorType& x = inputs[0];
  check_rows("affine", x);
  user_check(x.shape.rank() >= 2, "[affine] wants x with 2 axes at least, got {}", to_string(x));
  check_floating_rank("affine", "w", inputs[1], 2);
  const int64_t columns = inputs[1].shape[0];
  check_type("affine", "w", inputs[1], {{columns, x.shape.back()}, x.dtype});
  check_type("affine", "bias", inputs[2], {{columns}, x.dtype});
  const TensorType y = {with_extent(x.shape, x.shape.rank() - 1, columns), x.dtype};
  if (inputs.size() == 4) check_type("affine", "addend", inputs[3], y);
  return {y};
}

// The weight gradient comes before the data's: after it, x is dead.
void gradient(GradientBuilder& g) {
  Builder& build = g.build();
  const ValueId dy = g.upstream();
  if (g.wants(2)) {
    std::vector<int64_t> rows(static_cast<size_t>(build.shape(dy).rank() - 1));
    std::iota(rows.begin(), rows.end(), 0);
    g.give(2, build.op("reduce", {dy}, {{"axes", rows}}));
  }
  if (g.wants(1)) {
    g.give(1, build.op("matmul", {stack_rows(build, dy), stack_rows(build, g.input(0))},
                       {{"transpose_a", int64_t{1}}, {"transpose_b", int64_t{0}}}));
  }
  if (g.wants(0)) {
    g.give(0, build.op("matmul", {dy, g.input(1)},
                       {{"transpose_a", int64_t{0}}, {"transpose_b", int64_t{0}}}));
  }
  if (g.node().inputs.size() == 4 && g.wants(3)) g.give(3, dy);
}

void reference(const KernelArgs& args) {
  const Rows rows = rows_of(args.inputs[0].type.shape);
  const int64_t columns = args.inputs[1].type.shape[0];
  with_float_type(args.inputs[0].type.dtype, [&]<class T>(TypeTag<T>) {
    const T *x = args.inputs[0].as<T>(), *w = args.inputs[1].as<T>(),
            *bias = args.inputs[2].as<T>();
    const T* addend = args.inputs.size() == 4 ? args.inputs[3].as<T>() : nullptr;
    for (int64_t r = 0; r < rows.count; ++r) {
      for (int64_t c = 0; c < columns; ++c) {
        Accumulator<T> sum = 0;
        for (int64_t k = 0; k < rows.columns; ++k) {
          sum += widen(x[r * rows.columns + k]) * widen(w[c * rows.columns + k]);
        }
        sum += widen(bias[c]);
        const int64_t at = r * columns + c;
        store(args.outputs[0].as<T>(), at, addend == nullptr ? sum : sum + widen(addend[at]));
      }
    }
  });
}

Work work(const Signature& s) {
  const double terms = static_cast<double>(s.inputs[0].shape.back()) + 1;
  return {2 * terms * static_cast<double>(s.outputs[0].elements()), 0};
}

std::vector<Sample> samples() {
  return {
      {.inputs = {{{5, 7}}, {{3, 7}}, {{3}}}, .differentiate = {0, 1, 2}},
      {.inputs = {{{5, 7}}, {{3, 7}}, {{3}}, {{5, 3}}}, .differentiate = {0, 1, 2, 3}},
      {.inputs = {{{2, 3, 24}}, {{16, 24}}, {{16}}, {{2, 3, 16}}}, .differentiate = {0, 1, 2, 3}},
      {.inputs = {{{64, 48}}, {{32, 48}}, {{32}}}},
      {.inputs = {{{1, 1}}, {{1, 1}}, {{1}}, {{1, 1}}}, .differentiate = {0, 1, 2, 3}},
  };
}

RowFlow rows(const RowCall& call, size_t output) {
  constexpr std::array<int, 4> kAxes = {1, -1, -1, 1};
  return rows_of_joint_slices(call, output, std::span(kAxes).first(call.inputs.size()));
}

std::optional<ProductForm> product(const Attrs&, size_t inputs) {
  return ProductForm{.row_per_output = true, .bias = 2, .addend = inputs == 4 ? 3 : -1};
}

}  // namespace

extern const OpDef op_affine{
    .name = "affine",
    .summary = "matrix product with a bias per column and what is added to it",
    .infer = infer,
    .gradient = gradient,
    .reference = reference,
    .work = work,
    .samples = samples,
    .rows = rows,
    .recompute = Recompute::costly,
    .in_place = {{0, 3}},
    .product = product,
    .maps = 1u << 1,
};

}  // namespace thimble
