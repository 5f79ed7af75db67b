// Attention and recurrent layers.
#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "base/error.h"
#include "import/lowering.h"

namespace thimble {
namespace {

// [N,heads,T,D] as [N,T,heads*D].
ValueId heads_joined(Builder& b, const PermutedTensor& x) {
  const ValueId value = in_order(b, x, {0, 2, 1, 3});
  const Shape shape = b.shape(value);
  return reshaped(b, value, {shape[0], shape[1], shape[2] * shape[3]});
}

// Where [N,T,C] is a part of what lies behind each other at a place: of which value, and from which number on.
struct Part {
  ValueId of;
  int64_t begin = 0, width = 0;  // of a place in the whole
};

std::optional<Part> part_of(const Builder& b, ValueId x) {
  const Graph& graph = b.graph();
  const Shape shape = b.shape(x);
  while (graph[x].producer.valid()) {
    const Node& node = graph[graph[x].producer];
    x = node.inputs.empty() ? x : node.inputs[0];
    if (node.op->view && node.op->gradient != nullptr) continue;  // reshaped, and not detached
    if (!node.op->slices) break;
    const Shape whole = b.shape(x);
    const int axis = static_cast<int>(node.attrs.integer("axis"));
    const int64_t step = whole.product(axis + 1, whole.rank());
    const int64_t begin = node.attrs.integer("begin"), end = node.attrs.integer("end");
    const bool behind_each_other =
        whole.product(0, axis) == shape[0] * shape[1] && (end - begin) * step == shape[2];
    if (!behind_each_other) break;
    return Part{x, begin * step, whole[axis] * step};
  }
  return std::nullopt;
}

// q, k and v [N,T,C] as one tensor, where they were cut out of one in this order.
std::optional<ValueId> packed_of(Builder& b, const std::vector<ValueId>& qkv) {
  const Shape shape = b.shape(qkv[0]);
  int64_t at = 0;
  ValueId whole;
  for (const ValueId one : qkv) {
    const std::optional<Part> part = part_of(b, one);
    if (!part || part->begin != at || (at > 0 && part->of != whole)) return std::nullopt;
    whole = part->of;
    at += b.shape(one)[2];
    if (one == qkv.back() && at != part->width) return std::nullopt;
  }
  return reshaped(b, whole, {shape[0], shape[1], at});
}

// With zeros behind the numbers of each head, which change neither scores nor results.
PermutedTensor widened(Builder& b, const PermutedTensor& x, int64_t width) {
  const int axis = place_of(x.order, 3);
  if (b.shape(x.value)[axis] == width) return x;
  return {b.op("slice_backward", {x.value},
               {{"axis", int64_t{axis}}, {"begin", int64_t{0}}, {"extent", width}}),
          x.order};
}

// Keys or values [N,groups,T,D] for every head that reads them: [N,heads,T,D].
ValueId for_heads(Builder& b, const PermutedTensor& x, int64_t heads) {
  const ValueId value = plain(b, x);
  const Shape shape = b.shape(value);
  if (shape[1] == heads) return value;
  user_check(shape[1] >= 1 && heads % shape[1] == 0, "{} heads do not share {} of keys", heads,
             shape[1]);
  const int64_t each = heads / shape[1];
  const ValueId apart = reshaped(b, value, {shape[0], shape[1], 1, shape[2], shape[3]});
  const ValueId wide =
      b.op("broadcast_to", {apart},
           {{"shape", std::vector<int64_t>{shape[0], shape[1], each, shape[2], shape[3]}}});
  return reshaped(b, wide, {shape[0], heads, shape[2], shape[3]});
}

// Written out, for masks that are neither causal nor absent.
ValueId with_mask(Lowering& l, const NetNode& node, const PermutedTensor& q,
                  const PermutedTensor& k, const PermutedTensor& v, double scale, double drop) {
  Builder& b = l.b();
  const int64_t heads = shape_of(b, q)[1];
  ValueId scores =
      b.op("matmul", {plain(b, q), for_heads(b, k, heads)}, {{"transpose_b", int64_t{1}}});
  scores = b.op("scale", {scores}, {{"factor", scale}});
  scores = b.op("add", {scores, l.stored(l.plain_in(node, 3))});
  ValueId shares = b.op("softmax", {scores});
  if (l.training() && drop > 0) {
    shares = b.op("dropout", {shares, l.rng()}, {{"p", drop}, {"stream", b.next_random_stream()}});
  }
  return b.op("matmul", {shares, for_heads(b, v, heads)});
}

// q [N,heads,Tq,D], k [N,groups,Tk,D] and v [N,groups,Tk,E], an optional mask that is added. The op
// has one width for all of them: the smaller is filled up with zeros, and the result cut.
void attention(Lowering& l, const NetNode& node) {
  Builder& b = l.b();
  const PermutedTensor q = l.stored_in(node, 0), k = l.stored_in(node, 1), v = l.stored_in(node, 2);
  user_check(q.order.size() == 4 && k.order.size() == 4 && v.order.size() == 4,
             "it wants queries, keys and values [N,heads,T,D]");
  const Shape shape = shape_of(b, q);
  const double scale = real_of(node, "scale", 1 / std::sqrt(static_cast<double>(shape[3])));
  const double drop = real_of(node, "dropout", 0);
  const bool causal = node.attrs.has("causal") && whole_of(node, "causal") != 0;
  if (l.has(node, 3)) {
    user_check(!causal, "it has a mask and is causal");
    return l.set_plain(node, with_mask(l, node, q, k, v, scale, drop));
  }
  Attrs attrs = {{"heads", shape[1]},
                 {"groups", shape_of(b, k)[1]},
                 {"causal", int64_t{causal}},
                 {"scale", scale}};
  const int64_t asked = shape_of(b, v)[3], width = std::max(shape[3], asked);
  std::vector<ValueId> inputs = {heads_joined(b, widened(b, q, width)),
                                 heads_joined(b, widened(b, k, width)),
                                 heads_joined(b, widened(b, v, width))};
  if (const std::optional<ValueId> packed = packed_of(b, inputs)) {
    inputs = {*packed};
    attrs.set("packed", int64_t{1});
  }
  if (l.training() && drop > 0) {
    attrs.set("dropout", drop);
    attrs.set("stream", b.next_random_stream());
    inputs.push_back(l.rng());
  }
  ValueId y = b.apply("attention", inputs, attrs)[0];
  y = reshaped(b, y, {shape[0], shape[2], shape[1], width});
  if (asked < width) {
    y = b.op("slice", {y}, {{"axis", int64_t{3}}, {"begin", int64_t{0}}, {"end", asked}});
  }
  l.set(node, {y, {0, 2, 1, 3}});
}

// One layer over x [N,T,I] from states [N,H]: all hidden states [N,T,H], the last ones. A run of time
// steps is a node, so that a planner can drop and repeat runs.
void lstm(Lowering& l, const NetNode& node) {
  constexpr int64_t kStepsAtOnce = 16;
  Builder& b = l.b();
  const PermutedTensor given = l.stored_in(node, 0);
  user_check(given.order.size() == 3, "it wants a sequence [N,T,I]");
  const ValueId x = in_order(b, given, {1, 0, 2});
  ValueId h = plain(b, l.stored_in(node, 1)), c = plain(b, l.stored_in(node, 2));
  const ValueId input = plain(b, l.stored_in(node, 3)), state = plain(b, l.stored_in(node, 4));
  const Shape weights = b.shape(input);
  user_check(weights.rank() == 2, "its weights are no matrices");
  ValueId bias = l.has(node, 5) ? plain(b, l.stored_in(node, 5))
                                : b.constant(0, {{weights[0]}, l.options().storage});
  if (l.has(node, 6)) bias = b.op("add", {bias, plain(b, l.stored_in(node, 6))});
  std::vector<ValueId> runs;
  const int64_t steps = b.shape(x)[0];
  user_check(steps >= 1 && steps <= 1 << 16, "it goes over {} time steps; {} are the most", steps,
             1 << 16);
  for (int64_t t = 0; t < steps; t += kStepsAtOnce) {
    const int64_t end = std::min(steps, t + kStepsAtOnce);
    const ValueId part =
        t == 0 && end == steps
            ? x
            : b.op("slice", {x}, {{"axis", int64_t{0}}, {"begin", t}, {"end", end}});
    const std::vector<ValueId> made = b.apply("lstm_steps", {part, h, c, input, state, bias});
    runs.push_back(made[0]);
    h = made[1], c = made[2];
  }
  const ValueId all = runs.size() == 1 ? runs[0] : b.op("concat", runs, {{"axis", int64_t{0}}});
  l.set(node, {all, {1, 0, 2}}, 0);
  if (node.out.size() > 1) l.set_plain(node, h, 1);
  if (node.out.size() > 2) l.set_plain(node, c, 2);
}

constexpr auto kRules = std::to_array<LoweringRule>({{"attention", attention}, {"lstm", lstm}});

}  // namespace

std::span<const LoweringRule> sequence_rules() { return kRules; }

}  // namespace thimble
