// matmul(a [...,M,K], b [...,K,N] [, addend [...,M,N]]) -> y [...,M,N] = a b [+ addend], rounded once;
// attrs transpose_a, transpose_b (0 or 1: the last two axes are stored swapped). The leading axes are
// equal, or b has none and is shared by all. y may lie where the addend does.
#include "ops/checks.h"
#include "ops/multiply/matmul_geometry.h"
#include "ops/multiply/stacked_rows.h"
#include "ops/reference.h"
#include "ops/row_rules.h"
#include "ops/samples.h"

namespace thimble {
namespace {

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs& attrs) {
  if (inputs.size() != 3) check_inputs("matmul", inputs, 2);
  check_floating("matmul", "matrix", inputs[0]);
  user_check(inputs[0].dtype == inputs[1].dtype, "[matmul] wants one dtype, got {} and {}",
             name_of(inputs[0].dtype), name_of(inputs[1].dtype));
  const TensorType y = {matmul_geometry(inputs[0].shape, inputs[1].shape, attrs).y,
                        inputs[0].dtype};
  if (inputs.size() == 3) check_type("matmul", "addend", inputs[2], y);
  return {y};
}

Attrs transposes(bool a, bool b) {
  return {{"transpose_a", int64_t{a}}, {"transpose_b", int64_t{b}}};
}

// The weight gradient comes first: after it, the activation a is dead while the data gradient is
// being written.
void gradient(GradientBuilder& g) {
  Builder& build = g.build();
  const ValueId a = g.input(0), b = g.input(1), dy = g.upstream();
  const MatmulGeometry at = matmul_geometry(build.shape(a), build.shape(b), g.attrs());
  if (g.wants(1)) {
    // A shared b sums over the batch too: one product of the stacked rows.
    const ValueId rows = at.shared ? stack_rows(build, a) : a;
    const ValueId d_rows = at.shared ? stack_rows(build, dy) : dy;
    g.give(1, at.transpose_b
                  ? build.op("matmul", {d_rows, rows}, transposes(true, at.transpose_a))
                  : build.op("matmul", {rows, d_rows}, transposes(!at.transpose_a, false)));
  }
  if (g.wants(0)) {
    g.give(0, at.transpose_a ? build.op("matmul", {b, dy}, transposes(at.transpose_b, true))
                             : build.op("matmul", {dy, b}, transposes(false, !at.transpose_b)));
  }
  if (g.node().inputs.size() == 3 && g.wants(2)) g.give(2, dy);
}

void reference(const KernelArgs& args) {
  const MatmulGeometry g =
      matmul_geometry(args.inputs[0].type.shape, args.inputs[1].type.shape, *args.attrs);
  with_float_type(args.inputs[0].type.dtype, [&]<class T>(TypeTag<T>) {
    const T* a = args.inputs[0].as<T>();
    const T* b = args.inputs[1].as<T>();
    const T* addend = args.inputs.size() == 3 ? args.inputs[2].as<T>() : nullptr;
    T* y = args.outputs[0].as<T>();
    for (int64_t p = 0; p < g.batch; ++p) {
      for (int64_t i = 0; i < g.m; ++i) {
        for (int64_t j = 0; j < g.n; ++j) {
          Accumulator<T> sum = 0;
          for (int64_t l = 0; l < g.k; ++l)
            sum += widen(a[g.a_at(p, i, l)]) * widen(b[g.b_at(p, l, j)]);
          const int64_t at = (p * g.m + i) * g.n + j;
          if (addend != nullptr) sum += widen(addend[at]);
          store(y, at, sum, args.adds_into(0));
        }
      }
    }
  });
}

Work work(const Signature& s) {
  return {matmul_geometry(s.inputs[0].shape, s.inputs[1].shape, s.attrs).flops(), 0};
}

std::vector<Sample> samples() {
  const auto sample = [](Shape a, Shape b, bool transpose_a, bool transpose_b) {
    return Sample{.inputs = {{a}, {b}},
                  .attrs = transposes(transpose_a, transpose_b),
                  .differentiate = {0, 1}};
  };
  const auto with_addend = [](Sample one, Shape y) {
    one.inputs.push_back({y});
    one.differentiate.push_back(2);
    return one;
  };
  std::vector<Sample> all = {sample({5, 7}, {7, 3}, false, false),
                             sample({7, 5}, {7, 3}, true, false),
                             sample({5, 7}, {3, 7}, false, true),
                             sample({7, 5}, {3, 7}, true, true),
                             sample({64, 48}, {32, 48}, false, true),
                             sample({2, 3, 4, 5}, {2, 3, 5, 6}, false, false),
                             sample({3, 5, 4}, {3, 6, 5}, true, true),
                             sample({2, 3, 5}, {5, 4}, false, false),
                             sample({2, 3, 2, 5}, {4, 5}, false, true),
                             sample({1, 1}, {1, 1}, false, false),
                             with_addend(sample({5, 7}, {3, 7}, false, true), {5, 3}),
                             with_addend(sample({2, 3, 5}, {5, 4}, false, false), {2, 3, 4}),
                             with_addend(sample({64, 16}, {48, 16}, false, true), {64, 48})};
  const size_t last = all.size() - 1;
  return and_added(and_added(std::move(all)), 1, last);
}

// A row of either factor is one of the product, but for rows along the axis that is summed over.
// Rows of both lie along one leading axis.
RowFlow rows(const RowCall& call, size_t) {
  const Shape& y = call.outputs[0].shape;
  std::optional<RowFlow> all;
  for (size_t i = 0; i < 2; ++i) {
    if (call.flows[i].kind == RowFlow::Kind::fixed) continue;
    if (call.flows[i].kind != RowFlow::Kind::rows) return kMixed;
    const Shape& from = call.inputs[i].shape;
    const auto at = row_axis(call.flows[i], from, call.rows);
    if (!at) return kMixed;
    const bool turned = call.attrs.integer(i == 0 ? "transpose_a" : "transpose_b", 0) != 0;
    const int behind = from.rank() - at->axis;   // 1: the last axis
    const int own = (i == 0) == turned ? 1 : 2;  // the axis that the product keeps
    if (behind <= 2 && behind != own) return kMixed;
    const int axis = behind > 2 ? at->axis : y.rank() - (i == 0 ? 2 : 1);
    const RowFlow flow = along_axis(*at, axis, y);
    if (all && (*all != flow || behind <= 2)) return kMixed;
    all = flow;
  }
  if (call.inputs.size() == 3 && call.flows[2].kind != RowFlow::Kind::fixed) {
    if (all && *all != call.flows[2]) return kMixed;
    all = call.flows[2];
  }
  return *all;
}

std::optional<ProductForm> product(const Attrs& attrs, size_t inputs) {
  if (attrs.integer("transpose_a", 0) != 0) return std::nullopt;
  return ProductForm{.row_per_output = attrs.integer("transpose_b", 0) != 0,
                     .addend = inputs == 3 ? 2 : -1};
}

}  // namespace

extern const OpDef op_matmul{
    .name = "matmul",
    .summary = "matrix product, batched or with one matrix for a whole batch, and what is added",
    .infer = infer,
    .gradient = gradient,
    .reference = reference,
    .work = work,
    .samples = samples,
    .rows = rows,
    .recompute = Recompute::costly,
    .in_place = {{0, 2}},
    .product = product,
    .maps = 1u << 1,
    .accumulates = 1,
};

}  // namespace thimble
