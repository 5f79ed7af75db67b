// take_rows(x [R,C], rows i32 [M]) -> [M,C]: row rows[i] of x; zeros where there is none. A row may
// be taken more than once.
#include "graph/builder.h"
#include "ops/embed/row_lookup.h"
#include "ops/reference.h"

namespace thimble {
namespace {

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs&) {
  check_inputs("take_rows", inputs, 2);
  check_floating_rank("take_rows", "x [R,C]", inputs[0], 2);
  user_check(inputs[1].shape.rank() == 1, "[take_rows] wants rows [M], got {}",
             to_string(inputs[1]));
  return {looked_up("take_rows", inputs[1], inputs[0].shape[1], inputs[0].dtype)};
}

// Rows are looked up in x, so that its gradient is that of a table.
void gradient(GradientBuilder& g) {
  const Attrs attrs = {{"rows", g.build().shape(g.input(0))[0]}};
  if (g.wants(0)) g.give(0, g.build().op("embed_backward", {g.input(1), g.upstream()}, attrs));
}

std::vector<Sample> samples() {
  const auto sample = [](Shape x, int64_t count) {
    return Sample{.inputs = {{x}, {{count}, DType::i32}},
                  .fills = {{}, {Fill::Kind::labels, -1, static_cast<double>(x[0])}},
                  .differentiate = {0}};
  };
  return {sample({9, 5}, 4), sample({3, 32}, 17)};
}

}  // namespace

extern const OpDef op_take_rows{
    .name = "take_rows",
    .summary = "rows of a matrix by their numbers",
    .infer = infer,
    .gradient = gradient,
    .reference = look_up_rows,
    .samples = samples,
};

}  // namespace thimble
