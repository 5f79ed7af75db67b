// count_correct(logits [R,C], labels i32 [R]) -> f32 [1]: the rows whose largest logit is at their
// label; attr ignore_index (-1). Of equal logits the first is the largest. The ignored label and one out of
// range are never right.
#include <array>

#include "ops/reduce/labels.h"
#include "ops/reduce/last_axis.h"
#include "ops/reference.h"
#include "ops/row_rules.h"
#include "ops/work.h"

namespace thimble {
namespace {

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs&) {
  check_inputs("count_correct", inputs, 2);
  check_labelled("count_correct", inputs[0], inputs[1]);
  return {{{1}, DType::f32}};
}

void reference(const KernelArgs& args) {
  const Rows rows = rows_of(args.inputs[0].type.shape);
  const int32_t* labels = args.inputs[1].as<int32_t>();
  const int64_t ignored = args.attrs->integer("ignore_index", -1);
  int64_t correct = 0;
  with_float_type(args.inputs[0].type.dtype, [&]<class T>(TypeTag<T>) {
    for (int64_t r = 0; r < rows.count; ++r) {
      const T* row = args.inputs[0].as<T>() + r * rows.columns;
      int64_t best = 0;
      for (int64_t c = 1; c < rows.columns; ++c) {
        if (widen(row[c]) > widen(row[best])) best = c;
      }
      correct += best == labels[r] && best != ignored ? 1 : 0;
    }
  });
  store(args.outputs[0].as<float>(), 0, static_cast<float>(correct), args.adds_into(0));
}

std::vector<Sample> samples() {
  const std::vector<Fill> fills = {{}, {Fill::Kind::labels, 0, 3}};
  return {
      {.inputs = {{{50, 3}}, {{50}, DType::i32}}, .fills = fills},
      {.inputs = {{{17, 3}}, {{17}, DType::i32}}, .fills = fills, .accumulate = 1},
      {.inputs = {{{50, 3}}, {{50}, DType::i32}},
       .attrs = {{"ignore_index", int64_t{1}}},
       .fills = fills},
  };
}

RowFlow rows(const RowCall& call, size_t) {
  constexpr std::array<int, 2> kAxes = {1, 0};
  return rows_added_up(call, kAxes);
}

}  // namespace

extern const OpDef op_count_correct{
    .name = "count_correct",
    .summary = "number of rows whose largest logit is at their label",
    .infer = infer,
    .reference = reference,
    .work = flops_per_input<1>,
    .samples = samples,
    .rows = rows,
    .accumulates = 1,
};

}  // namespace thimble
