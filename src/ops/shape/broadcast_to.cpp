// broadcast_to(x) -> y: x repeated to a shape it broadcasts to; attr shape (integer list).
#include "ops/pointwise/binary.h"
#include "ops/row_rules.h"

namespace thimble {
namespace {

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs& attrs) {
  check_one_floating("broadcast_to", inputs);
  const Shape shape{std::span<const int64_t>(attrs.integers("shape"))};
  user_check(broadcast(inputs[0].shape, shape, "broadcast_to") == shape,
             "[broadcast_to] {} does not repeat to {}", to_string(inputs[0].shape),
             to_string(shape));
  return {{shape, inputs[0].dtype}};
}

void gradient(GradientBuilder& g) {
  if (g.wants(0)) g.give(0, sum_to_shape(g.build(), g.upstream(), g.build().shape(g.input(0))));
}

void reference(const KernelArgs& args) {
  move_strided(args, broadcast_strides(args.inputs[0].type.shape, args.outputs[0].type.shape));
}

std::vector<Sample> samples() {
  using List = std::vector<int64_t>;
  return {
      {.inputs = {{{8}}}, .attrs = {{"shape", List{2, 3, 8}}}, .differentiate = {0}},
      {.inputs = {{{2, 1, 4}}}, .attrs = {{"shape", List{2, 3, 4}}}, .differentiate = {0}},
      {.inputs = {{{3, 1}}}, .attrs = {{"shape", List{2, 3, 5}}}, .differentiate = {0}},
      {.inputs = {{{}}}, .attrs = {{"shape", List{6}}}, .differentiate = {0}},
      {.inputs = {{{5, 1}}}, .attrs = {{"shape", List{5, 7}}}, .accumulate = 1},
  };
}

RowFlow rows(const RowCall& call, size_t output) {
  const bool fixed = call.flows[0].kind == RowFlow::Kind::fixed;
  return fixed ? rows_of_repeats(call, output) : rows_of_linear(call, output);
}

}  // namespace

extern const OpDef op_broadcast_to{
    .name = "broadcast_to",
    .summary = "a tensor repeated along axes",
    .infer = infer,
    .gradient = gradient,
    .reference = reference,
    .samples = samples,
    .rows = rows,
    .accumulates = 1,
};

}  // namespace thimble
