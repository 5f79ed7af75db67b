// detach(x) -> y = x, through which no gradient passes. A view.
#include "ops/reference.h"
#include "ops/row_rules.h"
#include "ops/shape/view.h"

namespace thimble {
namespace {

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs&) {
  check_inputs("detach", inputs, 1);
  return {inputs[0]};
}

std::vector<Sample> samples() { return {{.inputs = {{{2, 3, 4}}}}, {.inputs = {{{7}}}}}; }

}  // namespace

extern const OpDef op_detach{
    .name = "detach",
    .summary = "the same tensor, as a constant to the gradient",
    .infer = infer,
    .reference = copy_view,
    .samples = samples,
    .rows = rows_of_linear,
    .view = true,
};

}  // namespace thimble
