// embed(table [V,C], tokens i32 [...]) -> [...,C]; attrs pad (-1: none; tokens of this number have
// rows of zeros and give no gradient), scale (1). A token that is no row of the table is padding,
// too; whoever fills tokens has checked them. attr untrained: tokens of this number have their row
// and give no gradient.
#include "graph/builder.h"
#include "ops/embed/row_lookup.h"
#include "ops/reference.h"
#include "ops/row_rules.h"

namespace thimble {
namespace {

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs&) {
  check_inputs("embed", inputs, 2);
  check_floating_rank("embed", "table [V,C]", inputs[0], 2);
  return {looked_up("embed", inputs[1], inputs[0].shape[1], inputs[0].dtype)};
}

void gradient(GradientBuilder& g) {
  Attrs attrs = g.attrs();
  attrs.set("rows", g.build().shape(g.input(0))[0]);
  if (attrs.has("untrained")) attrs.set("pad", attrs.integer("untrained"));
  if (g.wants(0)) g.give(0, g.build().op("embed_backward", {g.input(1), g.upstream()}, attrs));
}

std::vector<Sample> samples() {
  const auto sample = [](int64_t rows, int64_t width, Shape tokens, Attrs attrs,
                         double lowest = 0) {
    return Sample{.inputs = {{{rows, width}}, {tokens, DType::i32}},
                  .attrs = std::move(attrs),
                  .fills = {{}, {Fill::Kind::labels, lowest, static_cast<double>(rows)}},
                  .differentiate = {0}};
  };
  return {sample(11, 7, {3, 5}, {}),
          sample(5, 32, {2, 9}, {{"pad", int64_t{1}}, {"scale", 5.65685}}),
          sample(40, 64, {6}, {{"scale", 8.0}}), sample(3, 16, {2, 3, 4}, {}, -1)};
}

// Numbers look up rows of a table: of a batch's numbers in a table of weights, or known numbers in a
// table whose last axis the rows lie along.
RowFlow rows(const RowCall& call, size_t output) {
  if (call.flows[1].kind != RowFlow::Kind::fixed) return rows_of_slices(call, output, 1, 0);
  const std::optional<RowAxis> at = row_axis(call.flows[0], call.inputs[0].shape, call.rows);
  if (call.flows[0].kind != RowFlow::Kind::rows || !at || at->axis != 1) return kMixed;
  const Shape& made = call.outputs[output].shape;
  return along_axis(*at, made.rank() - 1, made);
}

}  // namespace

extern const OpDef op_embed{
    .name = "embed",
    .summary = "rows of a table by the numbers of tokens",
    .infer = infer,
    .gradient = gradient,
    .reference = look_up_rows,
    .samples = samples,
    .rows = rows,
    .tables = 1,
};

}  // namespace thimble
