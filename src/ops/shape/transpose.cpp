// transpose(x) -> y with axes reordered: axis k of y is axis perm[k] of x; attr perm.
#include <algorithm>

#include "graph/builder.h"
#include "ops/row_rules.h"
#include "ops/shape/strided.h"

namespace thimble {
namespace {

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs& attrs) {
  check_inputs("transpose", inputs, 1);
  const Shape& x = inputs[0].shape;
  const std::vector<int64_t>& perm = attrs.integers("perm");
  user_check(perm.size() == x.dims().size(), "[transpose] orders {} axes, but {} has {}",
             perm.size(), to_string(x), x.rank());
  std::vector<int64_t> dims;
  uint32_t seen = 0;
  for (const int64_t axis : perm) {
    user_check(axis >= 0 && axis < x.rank() && ((seen >> axis) & 1u) == 0,
               "[transpose] perm must name each axis of {} once; {} is wrong", to_string(x), axis);
    seen |= 1u << axis;
    dims.push_back(x[static_cast<int>(axis)]);
  }
  return {{Shape(std::span<const int64_t>(dims)), inputs[0].dtype}};
}

void gradient(GradientBuilder& g) {
  if (!g.wants(0)) return;
  const std::vector<int64_t>& perm = g.attrs().integers("perm");
  std::vector<int64_t> inverse(perm.size());
  for (size_t k = 0; k < perm.size(); ++k) {
    inverse[static_cast<size_t>(perm[k])] = static_cast<int64_t>(k);
  }
  g.give(0, g.build().op("transpose", {g.upstream()}, {{"perm", inverse}}));
}

void reference(const KernelArgs& args) {
  const std::vector<int64_t>& perm = args.attrs->integers("perm");
  const Strides own = row_major(args.inputs[0].type.shape);
  Strides strides{};
  for (size_t k = 0; k < perm.size(); ++k) strides[k] = own[static_cast<size_t>(perm[k])];
  move_strided(args, strides);
}

std::vector<Sample> samples() {
  using List = std::vector<int64_t>;
  return {
      {.inputs = {{{5, 7}}}, .attrs = {{"perm", List{1, 0}}}, .differentiate = {0}},
      {.inputs = {{{2, 3, 4, 5}}}, .attrs = {{"perm", List{0, 2, 1, 3}}}, .differentiate = {0}},
      {.inputs = {{{2, 3, 4}}}, .attrs = {{"perm", List{2, 0, 1}}}, .differentiate = {0}},
      {.inputs = {{{3, 4}, DType::i32}},
       .attrs = {{"perm", List{1, 0}}},
       .fills = {{Fill::Kind::labels, 0, 1000}}},
      {.inputs = {{{2, 3, 4}}}, .attrs = {{"perm", List{1, 2, 0}}}, .accumulate = 1},
  };
}

RowFlow rows(const RowCall& call, size_t) {
  if (call.flows[0].kind != RowFlow::Kind::rows) return call.flows[0];
  const std::optional<RowAxis> at = row_axis(call.flows[0], call.inputs[0].shape, call.rows);
  if (!at) return kMixed;
  const std::vector<int64_t>& perm = call.attrs.integers("perm");
  const auto axis = std::ranges::find(perm, int64_t{at->axis}) - perm.begin();
  return along_axis(*at, static_cast<int>(axis), call.outputs[0].shape);
}

}  // namespace

extern const OpDef op_transpose{
    .name = "transpose",
    .summary = "axes in another order",
    .infer = infer,
    .gradient = gradient,
    .reference = reference,
    .samples = samples,
    .rows = rows,
    .accumulates = 1,
};

}  // namespace thimble
