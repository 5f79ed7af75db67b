// Sums, means and shares over axes.
#include <algorithm>
#include <array>

#include "base/error.h"
#include "import/lowering.h"

namespace thimble {
namespace {

void reduce(Lowering& l, const NetNode& node) {
  Builder& b = l.b();
  PermutedTensor x = l.in(node, 0);
  x.value = l.in_dtype(x.value, l.dtypes_of(node).computed);
  const std::vector<int64_t>& axes = wholes_of(node, "axes", 0);
  const bool keep = node.attrs.has("keep") && whole_of(node, "keep") != 0;
  const auto reduced = [&](int axis) { return std::ranges::find(axes, axis) != axes.end(); };
  std::vector<int64_t> places;
  for (const int64_t axis : axes) {
    user_check(axis >= 0 && axis < std::ssize(x.order), "it has no axis {}", axis);
    places.push_back(place_of(x.order, static_cast<int>(axis)));
  }
  std::ranges::sort(places);
  // The largest has no gradient here: which one it is has to be found out beside it.
  const ValueId from = node.op == "max" ? b.op("detach", {x.value}) : x.value;
  const ValueId y =
      b.op("reduce", {from}, {{"axes", places}, {"kind", node.op}, {"keep_dims", int64_t{keep}}});
  if (keep) return l.set(node, {y, x.order});
  Order order;
  for (const int axis : x.order) {
    if (reduced(axis)) continue;
    const auto before = std::ranges::count_if(axes, [&](int64_t gone) { return gone < axis; });
    order.push_back(axis - static_cast<int>(before));
  }
  l.set(node, {y, order});
}

// The axis comes to lie last, the others as they are.
PermutedTensor axis_last(Builder& b, const PermutedTensor& x, int axis) {
  Order order = x.order;
  std::erase(order, axis);
  order.push_back(axis);
  return {in_order(b, x, order), order};
}

void softmax(Lowering& l, const NetNode& node) {
  const PermutedTensor given = l.stored_in(node, 0);
  const PermutedTensor x =
      axis_last(l.b(), given, axis_in(node, "axis", static_cast<int>(given.order.size())));
  Attrs attrs;
  if (node.op == "log_softmax") attrs.set("log", int64_t{1});
  l.set(node, {l.b().op("softmax", {x.value}, attrs), x.order});
}

void cumprod(Lowering& l, const NetNode& node) {
  const PermutedTensor given = l.stored_in(node, 0);
  const PermutedTensor x =
      axis_last(l.b(), given, axis_in(node, "axis", static_cast<int>(given.order.size())));
  l.set(node, {l.b().op("cumprod", {x.value}), x.order});
}

constexpr auto kRules = std::to_array<LoweringRule>({{"sum", reduce},
                                                     {"mean", reduce},
                                                     {"max", reduce},
                                                     {"softmax", softmax},
                                                     {"log_softmax", softmax},
                                                     {"cumprod", cumprod}});

}  // namespace

std::span<const LoweringRule> reduce_rules() { return kRules; }

}  // namespace thimble
