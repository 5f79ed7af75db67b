// reshape(x) -> y: the same elements under another shape; attr shape (integer list). A view.
#include "graph/builder.h"
#include "ops/reference.h"
#include "ops/row_rules.h"
#include "ops/shape/view.h"

namespace thimble {
namespace {

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs& attrs) {
  check_inputs("reshape", inputs, 1);
  const Shape shape{std::span<const int64_t>(attrs.integers("shape"))};
  user_check(shape.elements() == inputs[0].elements(), "[reshape] {} has {} elements, {} has {}",
             to_string(inputs[0].shape), inputs[0].elements(), to_string(shape), shape.elements());
  return {{shape, inputs[0].dtype}};
}

void gradient(GradientBuilder& g) {
  if (!g.wants(0)) return;
  const Shape x = g.build().shape(g.input(0));
  const std::vector<int64_t> dims(x.dims().begin(), x.dims().end());
  g.give(0, g.build().op("reshape", {g.upstream()}, {{"shape", dims}}));
}

std::vector<Sample> samples() {
  using List = std::vector<int64_t>;
  return {
      {.inputs = {{{2, 3, 4}}}, .attrs = {{"shape", List{6, 4}}}, .differentiate = {0}},
      {.inputs = {{{8}}}, .attrs = {{"shape", List{1, 8, 1}}}, .differentiate = {0}},
      {.inputs = {{{1}}}, .attrs = {{"shape", List{}}}, .differentiate = {0}},
  };
}

// Elements stay in their order.
RowFlow rows(const RowCall& call, size_t) { return call.flows[0]; }

}  // namespace

extern const OpDef op_reshape{
    .name = "reshape",
    .summary = "the same elements under another shape",
    .infer = infer,
    .gradient = gradient,
    .reference = copy_view,
    .samples = samples,
    .rows = rows,
    .view = true,
};

}  // namespace thimble
