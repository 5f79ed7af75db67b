#include "ops/row_rules.h"

#include <algorithm>

namespace thimble {
namespace {

using Kind = RowFlow::Kind;

// The flow of an operand that is repeated to the result's shape like numpy does.
RowFlow broadcast_flow(const RowFlow& flow, const Shape& from, const Shape& to, int64_t rows) {
  if (flow.kind != Kind::rows || from == to) return flow;
  const std::optional<RowAxis> at = row_axis(flow, from, rows);
  if (!at) return kMixed;
  const int axis = at->axis + to.rank() - from.rank();
  return to[axis] == from[at->axis] ? along_axis(*at, axis, to) : kMixed;
}

}  // namespace

RowFlow rows_by_element(const RowCall& call, size_t output) {
  RowFlow all;
  for (size_t i = 0; i < call.flows.size(); ++i) {
    const RowFlow flow =
        broadcast_flow(call.flows[i], call.inputs[i].shape, call.outputs[output].shape, call.rows);
    if (flow.kind == Kind::fixed) continue;
    if (flow.kind == Kind::mixed) return kMixed;
    if (is_sum(flow)) {
      if (all.kind == Kind::rows) return kMixed;
      all.kind = Kind::of_sums;
    } else if (all.kind == Kind::fixed) {
      all = flow;
    } else if (all != flow) {
      return kMixed;
    }
  }
  return all;
}

RowFlow rows_of_linear(const RowCall& call, size_t output) {
  return is_sum(call.flows[0]) ? call.flows[0] : rows_by_element(call, output);
}

RowFlow rows_of_repeats(const RowCall& call, size_t output) {
  const bool fixed =
      std::ranges::all_of(call.flows, [](const RowFlow& flow) { return flow.kind == Kind::fixed; });
  return fixed ? call.repeated[output] : kMixed;
}

RowFlow rows_of_sum(const RowCall& call, size_t output) {
  const auto mean_like = [](const RowFlow& f) {
    return f.kind == Kind::mean || f.kind == Kind::fixed;
  };
  const RowFlow &a = call.flows[0], &b = call.flows[1];
  if (a.kind == Kind::sum && b.kind == Kind::sum) {
    return {.kind = Kind::sum, .entries = std::max(a.entries, b.entries)};
  }
  if ((is_sum(a) || is_sum(b)) && mean_like(a) && mean_like(b)) return {.kind = Kind::mean};
  return rows_by_element(call, output);
}

RowFlow rows_of_product(const RowCall& call, size_t output) {
  const RowFlow &a = call.flows[0], &b = call.flows[1];
  if (is_sum(a) && b.kind == Kind::fixed) return a;
  if (is_sum(b) && a.kind == Kind::fixed) return b;
  return rows_by_element(call, output);
}

RowFlow rows_of_quotient(const RowCall& call, size_t output) {
  if (is_sum(call.flows[0]) && call.flows[1].kind == Kind::fixed) return call.flows[0];
  return rows_by_element(call, output);
}

RowFlow rows_of_slices(const RowCall& call, size_t output, size_t input, int axes) {
  std::vector<int> all(call.inputs.size(), -1);
  all[input] = axes;
  return rows_of_joint_slices(call, output, all);
}

// axes[i] of input i; -1: an input of another kind, which has to be fixed.
RowFlow rows_of_joint_slices(const RowCall& call, size_t output, std::span<const int> axes) {
  RowFlow all;
  for (size_t i = 0; i < call.flows.size(); ++i) {
    const RowFlow& flow = call.flows[i];
    if (flow.kind == Kind::fixed) continue;
    if (flow.kind != Kind::rows || axes[i] < 0) return kMixed;
    const Shape& from = call.inputs[i].shape;
    if (from.rank() < axes[i]) return kMixed;
    const int64_t slice = from.product(from.rank() - axes[i], from.rank());
    if (slice == 0 || flow.inner % slice != 0) return kMixed;
    const int64_t slices = from.elements() / slice;
    const int64_t made = call.outputs[output].elements();
    if (made % slices != 0) return kMixed;
    const RowFlow next = {
        .kind = Kind::rows, .outer = flow.outer, .inner = flow.inner / slice * (made / slices)};
    if (all.kind == Kind::rows && all != next) return kMixed;
    all = next;
  }
  return all;
}

RowFlow rows_added_up(const RowCall& call, std::span<const int> axes) {
  RowFlow slices;
  for (size_t i = 0; i < call.flows.size(); ++i) {
    const RowFlow& flow = call.flows[i];
    if (flow.kind == Kind::fixed) continue;
    const Shape& from = call.inputs[i].shape;
    if (flow.kind != Kind::rows || axes[i] < 0 || from.rank() < axes[i]) return kMixed;
    const int64_t slice = from.product(from.rank() - axes[i], from.rank());
    if (slice == 0 || flow.inner % slice != 0) return kMixed;
    const RowFlow next = {.kind = Kind::rows, .outer = flow.outer, .inner = flow.inner / slice};
    if (slices.kind == Kind::rows && slices != next) return kMixed;
    slices = next;
  }
  return {.kind = Kind::sum, .entries = static_cast<double>(slices.outer * slices.inner)};
}

RowFlow rows_of_statistics(const RowCall&, size_t) { return {}; }

}  // namespace thimble
