// count_labels(labels i32 [...]) -> f32 [1]: how many of them are not `ignore_index` (attr; -1).
// The count that the mean of a cross-entropy is over.
#include <array>

#include "ops/checks.h"
#include "ops/reference.h"
#include "ops/row_rules.h"

namespace thimble {
namespace {

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs&) {
  check_inputs("count_labels", inputs, 1);
  user_check(inputs[0].dtype == DType::i32, "[count_labels] wants labels in i32, got {}",
             to_string(inputs[0]));
  return {{{1}, DType::f32}};
}

void reference(const KernelArgs& args) {
  const int64_t ignored = args.attrs->integer("ignore_index", -1);
  const int32_t* labels = args.inputs[0].as<int32_t>();
  int64_t count = 0;
  for (int64_t i = 0; i < args.inputs[0].elements(); ++i) count += labels[i] != ignored ? 1 : 0;
  store(args.outputs[0].as<float>(), 0, static_cast<float>(count), args.adds_into(0));
}

std::vector<Sample> samples() {
  const std::vector<Fill> fills = {{Fill::Kind::labels, 0, 5}};
  const Attrs attrs = {{"ignore_index", int64_t{3}}};
  return {
      {.inputs = {{{50}, DType::i32}}, .attrs = attrs, .fills = fills},
      {.inputs = {{{4, 700}, DType::i32}}, .attrs = attrs, .fills = fills, .accumulate = 1},
  };
}

RowFlow rows(const RowCall& call, size_t) {
  constexpr std::array<int, 1> kAxes = {0};
  return rows_added_up(call, kAxes);
}

}  // namespace

extern const OpDef op_count_labels{
    .name = "count_labels",
    .summary = "number of labels that are not ignored",
    .infer = infer,
    .reference = reference,
    .samples = samples,
    .rows = rows,
    .accumulates = 1,
};

}  // namespace thimble
