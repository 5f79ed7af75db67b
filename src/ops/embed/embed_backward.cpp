// embed_backward(tokens i32 [...], dy [...,C]) -> dtable [V,C]; attrs rows (V), pad, scale as of
// embed. A row of the table gets the sum over its tokens, in their order, rounded once.
#include <array>

#include "graph/builder.h"
#include "ops/embed/row_lookup.h"
#include "ops/reference.h"
#include "ops/row_rules.h"
#include "ops/samples.h"

namespace thimble {
namespace {

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs& attrs) {
  check_inputs("embed_backward", inputs, 2);
  check_floating("embed_backward", "gradient [...,C]", inputs[1]);
  user_check(inputs[1].shape.rank() >= 1, "[embed_backward] wants a gradient [...,C], got {}",
             to_string(inputs[1]));
  const int64_t width = inputs[1].shape.back(), rows = attrs.integer("rows");
  check_type("embed_backward", "gradient", inputs[1],
             looked_up("embed_backward", inputs[0], width, inputs[1].dtype));
  return {{{rows, width}, inputs[1].dtype}};
}

// Sums of rows are a layer of imported nets, too.
void gradient(GradientBuilder& g) {
  Attrs attrs;
  if (g.attrs().has("pad")) attrs.set("pad", g.attrs().integer("pad"));
  if (g.attrs().has("scale")) attrs.set("scale", g.attrs().real("scale"));
  if (g.wants(1)) g.give(1, g.build().op("embed", {g.upstream(), g.input(0)}, attrs));
}

// One row of sums.
Bytes reference_workspace(const Signature& s) {
  return TensorType{{s.outputs[0].shape[1]}, statistics_dtype(s.inputs[1].dtype)}.bytes();
}

void reference(const KernelArgs& args) {
  const Shape& table = args.outputs[0].type.shape;
  const RowLookup lookup(table[0], table[1], *args.attrs);
  const int32_t* tokens = args.inputs[0].as<int32_t>();
  with_float_type(args.outputs[0].type.dtype, [&]<class T>(TypeTag<T>) {
    using Real = Accumulator<T>;
    Real* const sums = reinterpret_cast<Real*>(args.workspace);
    for (int64_t row = 0; row < lookup.rows; ++row) {
      for (int64_t c = 0; c < lookup.width; ++c) sums[c] = 0;
      for (int64_t i = 0; i < args.inputs[0].elements(); ++i) {
        if (tokens[i] != row || !lookup.has(tokens[i])) continue;
        const T* dy = args.inputs[1].as<T>() + i * lookup.width;
        for (int64_t c = 0; c < lookup.width; ++c) sums[c] += widen(dy[c]);
      }
      for (int64_t c = 0; c < lookup.width; ++c) {
        store(args.outputs[0].as<T>(), row * lookup.width + c,
              sums[c] * static_cast<Real>(lookup.scale), args.adds_into(0));
      }
    }
  });
}

std::vector<Sample> samples() {
  std::vector<Sample> result;
  const auto add = [&](int64_t rows, Shape dy, Attrs attrs, double lowest = 0) {
    attrs.set("rows", rows);
    const Shape tokens(dy.dims().first(static_cast<size_t>(dy.rank()) - 1));
    result.push_back({.inputs = {{tokens, DType::i32}, {dy}},
                      .attrs = std::move(attrs),
                      .fills = {{Fill::Kind::labels, lowest, static_cast<double>(rows)}},
                      .differentiate = {1}});
  };
  add(11, {3, 5, 7}, {});
  add(5, {2, 9, 32}, {{"pad", int64_t{1}}, {"scale", 5.65685}});
  add(300, {200, 64}, {{"scale", 8.0}});  // many rows that no token has
  add(3, {700, 16}, {}, -1);              // many tokens of a row
  return and_added(and_added(std::move(result), 1, 1), 1, 2);
}

// Added up over the batch, but where its rows lie along the last axis and the numbers are known.
RowFlow rows(const RowCall& call, size_t output) {
  const Shape& dy = call.inputs[1].shape;
  if (call.flows[0].kind == RowFlow::Kind::fixed && call.flows[1].kind == RowFlow::Kind::rows) {
    const std::optional<RowAxis> at = row_axis(call.flows[1], dy, call.rows);
    if (at && at->axis == dy.rank() - 1) return along_axis(*at, 1, call.outputs[output].shape);
  }
  constexpr std::array<int, 2> kAxes = {0, 1};
  return rows_added_up(call, kAxes);
}

}  // namespace

extern const OpDef op_embed_backward{
    .name = "embed_backward",
    .summary = "gradient of embed and of take_rows",
    .infer = infer,
    .gradient = gradient,
    .reference = reference,
    .reference_workspace = reference_workspace,
    .samples = samples,
    .rows = rows,
    .accumulates = 1,
};

}  // namespace thimble
