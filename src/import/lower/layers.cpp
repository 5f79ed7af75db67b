// Products, norms, tables.
#include <algorithm>
#include <array>

#include "base/error.h"
#include "import/lowering.h"

namespace thimble {
namespace {

constexpr std::array<std::string_view, 3> kFusedWithBias = {"relu", "sigmoid", "tanh"};
constexpr std::array<std::string_view, 1> kFusedWithNorm = {"relu"};

// The last axis of the net lies last, the others as they are.
PermutedTensor last_last(Builder& b, const PermutedTensor& x) {
  user_check(!x.order.empty(), "it wants a tensor with axes");
  Order order = x.order;
  const int last = static_cast<int>(order.size()) - 1;
  std::erase(order, last);
  order.push_back(last);
  return {in_order(b, x, order), order};
}

void linear(Lowering& l, const NetNode& node) {
  Builder& b = l.b();
  const PermutedTensor x = last_last(b, l.stored_in(node, 0)), w = l.stored_in(node, 1);
  user_check(w.order.size() == 2, "its weight has {} axes, not 2", w.order.size());
  ValueId from = x.value;
  if (x.order.size() == 1) from = reshaped(b, from, {1, b.shape(from)[0]});
  const bool turned = !is_plain(w.order), biased = l.has(node, 2);
  const std::string act = biased ? l.fused_activation(node, kFusedWithBias) : "none";
  ValueId y;
  if (l.joins_products() && biased && act == "none" && !turned) {
    y = b.op("affine", {from, w.value, plain(b, l.stored_in(node, 2))});
  } else {
    y = b.op("matmul", {from, w.value},
             {{"transpose_a", int64_t{0}}, {"transpose_b", int64_t{!turned}}});
    if (biased) y = b.op("bias_act", {y, plain(b, l.stored_in(node, 2))}, {{"act", act}});
  }
  if (x.order.size() == 1) y = reshaped(b, y, {b.shape(y)[1]});
  l.set(node, {y, x.order});
}

// Leading axes in the net's order, then the last two as they lie: whether they are swapped.
struct Factor {
  ValueId value;
  bool swapped;
};

Factor factor_of(Builder& b, const PermutedTensor& x) {
  const int rank = static_cast<int>(x.order.size());
  Order order = plain_order(rank);
  const bool swapped = place_of(x.order, rank - 1) < place_of(x.order, rank - 2);
  if (swapped) std::swap(order[order.size() - 1], order[order.size() - 2]);
  return {in_order(b, x, order), swapped};
}

ValueId repeated(Builder& b, ValueId x, std::span<const int64_t> leading) {
  std::vector<int64_t> dims(leading.begin(), leading.end());
  const Shape shape = b.shape(x);
  dims.push_back(shape.back(2));
  dims.push_back(shape.back(1));
  if (Shape(std::span<const int64_t>(dims)) == shape) return x;
  return b.op("broadcast_to", {x}, {{"shape", dims}});
}

void matmul(Lowering& l, const NetNode& node) {
  Builder& b = l.b();
  const PermutedTensor x = l.stored_in(node, 0), y = l.stored_in(node, 1);
  user_check(x.order.size() >= 2 && y.order.size() >= 2,
             "it multiplies a vector; give it a second axis");
  Factor left = factor_of(b, x), right = factor_of(b, y);
  const Shape result = l.stated(node);
  const auto leading = result.dims().first(static_cast<size_t>(std::max(0, result.rank() - 2)));
  const bool shared = y.order.size() == 2 && x.order.size() > 2;
  if (shared && left.swapped) left = {plain(b, x), false};
  if (!shared) right.value = repeated(b, right.value, leading);
  left.value = repeated(b, left.value, leading);
  l.set_plain(node, b.op("matmul", {left.value, right.value},
                         {{"transpose_a", int64_t{left.swapped}},
                          {"transpose_b", int64_t{right.swapped}}}));
}

// Each row by itself, over its last `axes` axes, which become one.
struct Rows {
  ValueId value;
  std::vector<int64_t> dims;  // before they became one
  int64_t columns;
  Order order;
};

Rows rows_of(Lowering& l, const NetNode& node) {
  Builder& b = l.b();
  const PermutedTensor given = l.stored_in(node, 0);
  const int64_t axes = whole_of(node, "axes");
  const int rank = static_cast<int>(given.order.size());
  user_check(axes >= 1 && axes <= rank, "it normalises {} of {} axes", axes, rank);
  Order order = given.order;
  std::erase_if(order, [&](int axis) { return axis >= rank - axes; });
  const int kept = static_cast<int>(order.size());
  for (int axis = rank - static_cast<int>(axes); axis < rank; ++axis) order.push_back(axis);
  const ValueId value = in_order(b, given, order);
  std::vector<int64_t> dims = dims_of(b.shape(value));
  const int64_t columns = b.shape(value).product(kept, rank);
  std::vector<int64_t> joined(dims.begin(), dims.begin() + kept);
  joined.push_back(columns);
  return {reshaped(b, value, joined), dims, columns, order};
}

void layer_norm(Lowering& l, const NetNode& node) {
  const Rows x = rows_of(l, node);
  const double epsilon = real_of(node, "epsilon", 1e-5);
  user_check(epsilon > 0, "its epsilon is {}, not above 0", epsilon);
  const ValueId y = l.b().op(
      "layer_norm", {x.value, l.scale_in(node, 1, 1, x.columns), l.scale_in(node, 2, 0, x.columns)},
      {{"epsilon", epsilon}});
  l.set(node, {reshaped(l.b(), y, x.dims), x.order});
}

void rms_norm(Lowering& l, const NetNode& node) {
  const Rows x = rows_of(l, node);
  const double epsilon = real_of(node, "epsilon", 1e-5);
  user_check(epsilon > 0, "its epsilon is {}, not above 0", epsilon);
  const ValueId y =
      l.b().op("rms_norm", {x.value, l.scale_in(node, 1, 1, x.columns)}, {{"epsilon", epsilon}});
  l.set(node, {reshaped(l.b(), y, x.dims), x.order});
}

// The channels, the net's second axis, lie last, the others as they are.
PermutedTensor channels_last(Builder& b, const PermutedTensor& x) {
  user_check(x.order.size() >= 2, "it wants [N,C,...]");
  Order order = x.order;
  std::erase(order, 1);
  order.push_back(1);
  return {in_order(b, x, order), order};
}

void batch_norm(Lowering& l, const NetNode& node) {
  Builder& b = l.b();
  const PermutedTensor x = channels_last(b, l.stored_in(node, 0));
  const Shape shape = b.shape(x.value);
  const int64_t channels = shape.back();
  const ValueId gamma = l.scale_in(node, 1, 1, channels), beta = l.scale_in(node, 2, 0, channels);
  const double momentum = real_of(node, "momentum", 0.1), epsilon = real_of(node, "epsilon", 1e-5);
  user_check(epsilon > 0 && momentum >= 0 && momentum <= 1, "its epsilon is {} and its momentum {}",
             epsilon, momentum);
  const bool own = l.training() && (!node.attrs.has("training") || whole_of(node, "training") != 0);
  std::vector<ValueId> statistics = {l.plain_in(node, 3), l.plain_in(node, 4)};
  if (own) {
    const int64_t count = shape.elements() / std::max<int64_t>(1, channels);
    const std::vector<ValueId> here = b.apply("batch_norm_stats", {x.value});
    b.apply("running_stats_update", {statistics[0], statistics[1], here[0], here[1]},
            {{"momentum", momentum}, {"count", count}});
    statistics = here;
  }
  const std::string act = l.fused_activation(node, kFusedWithNorm);
  l.set(node, {b.op("batch_norm", {x.value, statistics[0], statistics[1], gamma, beta},
                    {{"epsilon", epsilon}, {"act", act}, {"training", int64_t{own}}}),
               x.order});
}

void group_norm(Lowering& l, const NetNode& node) {
  Builder& b = l.b();
  const PermutedTensor given = l.stored_in(node, 0);
  user_check(given.order.size() == 4, "it wants images [N,C,H,W]");
  const Order order = {0, 2, 3, 1};
  const ValueId x = in_order(b, given, order);
  const int64_t channels = b.shape(x).back();
  const ValueId gamma = l.scale_in(node, 1, 1, channels), beta = l.scale_in(node, 2, 0, channels);
  l.set(node, {b.op("group_norm", {x, gamma, beta},
                    {{"groups", whole_of(node, "groups")},
                     {"epsilon", real_of(node, "epsilon", 1e-5)},
                     {"act", l.fused_activation(node, kFusedWithNorm)}}),
               order});
}

void embedding(Lowering& l, const NetNode& node) {
  Builder& b = l.b();
  const ValueId table = plain(b, l.stored_in(node, 0)), ids = l.numbers_in(node, 1);
  Attrs attrs;
  if (node.attrs.has("padding")) attrs.set("untrained", whole_of(node, "padding"));
  l.set_plain(node, b.op("embed", {table, ids}, attrs));
}

constexpr auto kRules = std::to_array<LoweringRule>({{"linear", linear},
                                                     {"matmul", matmul},
                                                     {"layer_norm", layer_norm},
                                                     {"rms_norm", rms_norm},
                                                     {"batch_norm", batch_norm},
                                                     {"group_norm", group_norm},
                                                     {"embedding", embedding}});

}  // namespace

std::span<const LoweringRule> layer_rules() { return kRules; }

}  // namespace thimble
