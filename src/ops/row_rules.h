// How ops pass the rows of a batch on (OpDef::rows): the few ways that most of them have in common.
#pragma once

#include "graph/row_flow.h"

namespace thimble {

// Whether it is a number of the whole batch.
inline bool is_sum(const RowFlow& flow) {
  return flow.kind == RowFlow::Kind::sum || flow.kind == RowFlow::Kind::mean ||
         flow.kind == RowFlow::Kind::of_sums;
}

// Each element of the result is a function of the elements at its place, operands broadcast like
// numpy.
RowFlow rows_by_element(const RowCall& call, size_t output);
// The same, linear in one operand: sums and means stay what they are.
RowFlow rows_of_linear(const RowCall& call, size_t output);
// Of what does not depend on rows, a tensor of any size, the same for every row or drawn for each.
RowFlow rows_of_repeats(const RowCall& call, size_t output);
// a + b, and a - b: of two sums, or of two means.
RowFlow rows_of_sum(const RowCall& call, size_t output);
// a * b, and a / b: a sum times what is no function of the rows.
RowFlow rows_of_product(const RowCall& call, size_t output);
RowFlow rows_of_quotient(const RowCall& call, size_t output);

// Every slice of the input's last `axes` axes becomes one of the result, by itself; the other
// inputs do not depend on the rows.
RowFlow rows_of_slices(const RowCall& call, size_t output, size_t input, int axes);
template <int kAxes, size_t kInput = 0>
RowFlow rows_by_slice(const RowCall& call, size_t output) {
  return rows_of_slices(call, output, kInput, kAxes);
}
// The same of several inputs, whose slices of so many last axes belong together.
RowFlow rows_of_joint_slices(const RowCall& call, size_t output, std::span<const int> axes);

// Numbers of each row, added up over all rows: every input is fixed, or lies by rows in slices of
// so many last axes, which belong together.
RowFlow rows_added_up(const RowCall& call, std::span<const int> axes);

// Statistics of a batch, which are no function of a row: a constant to whatever reads them.
// Micro-batches have their own, which OpDef::mixes_rows says.
RowFlow rows_of_statistics(const RowCall& call, size_t output);

}  // namespace thimble
