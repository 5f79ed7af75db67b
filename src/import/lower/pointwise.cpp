// Ops that work element by element.
#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"
#include "import/lowering.h"

namespace thimble {
namespace {

using Rule = void (*)(Lowering&, const NetNode&);

// Ops of ours of the same name, and what they are told.
void unary(Lowering& l, const NetNode& node, std::string_view op, Attrs attrs = {}) {
  const auto [computed, kept] = l.dtypes_of(node);
  const PermutedTensor x = l.in(node, 0);
  const ValueId y = l.b().op(op, {l.in_dtype(x.value, computed)}, std::move(attrs));
  l.set(node, {l.in_dtype(y, kept), x.order});
}

void mapped(Lowering& l, const NetNode& node, std::string_view function, double a = 0,
            double b = 0) {
  unary(l, node, "map", {{"of", std::string(function)}, {"a", a}, {"b", b}});
}

void same_name(Lowering& l, const NetNode& node) { unary(l, node, node.op); }
void same_map(Lowering& l, const NetNode& node) { mapped(l, node, node.op); }

void power(Lowering& l, const NetNode& node) {
  const double exponent = real_of(node, "exponent", 1);
  if (exponent == 2) return mapped(l, node, "square");
  if (exponent == 0.5) return mapped(l, node, "sqrt");
  if (exponent == -0.5) return mapped(l, node, "rsqrt");
  if (exponent == -1) return mapped(l, node, "reciprocal");
  mapped(l, node, "pow", exponent);
}

void clip(Lowering& l, const NetNode& node) {
  constexpr double kFar = 3.0e38;
  mapped(l, node, "clip", real_of(node, "low", -kFar), real_of(node, "high", kFar));
}

void gelu(Lowering& l, const NetNode& node) {
  unary(l, node, "gelu", {{"approximate", std::string(node.attrs.text("approximate", "none"))}});
}

// Both with as many axes, in one order: that of the larger.
struct Aligned {
  ValueId a, b;
  Order order;
};

PermutedTensor with_axes(Builder& b, const PermutedTensor& x, size_t rank) {
  const size_t missing = rank - x.order.size();
  if (missing == 0) return x;
  PermutedTensor padded = {x.value, plain_order(static_cast<int>(missing))};
  std::vector<int64_t> dims(missing, 1);
  for (const int64_t extent : dims_of(b.shape(x.value))) dims.push_back(extent);
  for (const int axis : x.order) padded.order.push_back(axis + static_cast<int>(missing));
  padded.value = reshaped(b, x.value, dims);
  return padded;
}

// Axes in front that say nothing are left out, so that biases look like biases.
ValueId without_leading_ones(Builder& b, ValueId x, bool smaller) {
  std::vector<int64_t> dims = dims_of(b.shape(x));
  while (smaller && dims.size() > 1 && dims.front() == 1) dims.erase(dims.begin());
  return reshaped(b, x, dims);
}

Aligned align(Builder& b, const PermutedTensor& x, const PermutedTensor& y) {
  const size_t rank = std::max(x.order.size(), y.order.size());
  const PermutedTensor left = with_axes(b, x, rank), right = with_axes(b, y, rank);
  const bool second = b.type(right.value).elements() > b.type(left.value).elements();
  const Order order = second ? right.order : left.order;
  const Shape a = b.shape(left.value), c = b.shape(right.value);
  return {without_leading_ones(b, in_order(b, left, order), second),
          without_leading_ones(b, in_order(b, right, order), !second && a != c), order};
}

ValueId scaled(Builder& b, ValueId x, double factor) {
  return b.op("scale", {x}, {{"factor", factor}});
}

ValueId shifted(Builder& b, ValueId x, double by) {
  return by == 0 ? x : b.op("map", {x}, {{"of", std::string("shift")}, {"a", by}});
}

ValueId one_minus(Builder& b, ValueId x) { return shifted(b, scaled(b, x, -1), 1); }

void with_number(Lowering& l, const NetNode& node, bool number_first, double number) {
  Builder& b = l.b();
  const auto [computed, kept] = l.dtypes_of(node);
  const PermutedTensor x = l.in(node, number_first ? 1 : 0);
  ValueId y = l.in_dtype(x.value, computed);
  constexpr double kInfinite = 1e30;  // numbers beyond stand for what is: they stay finite here
  if (std::abs(number) > kInfinite && node.op != "div") {
    number = std::clamp(number, -largest_of(kept), largest_of(kept));
  }
  if (node.op == "add") {
    y = shifted(b, y, number);
  } else if (node.op == "sub") {
    y = number_first ? shifted(b, scaled(b, y, -1), number) : shifted(b, y, -number);
  } else if (node.op == "mul") {
    y = scaled(b, y, number);
  } else if (number_first) {
    y = scaled(b, b.op("map", {y}, {{"of", std::string("reciprocal")}}), number);
  } else {
    user_check(number != 0, "it divides by 0");
    y = scaled(b, y, 1 / number);
  }
  l.set(node, {l.in_dtype(y, kept), x.order});
}

void arithmetic(Lowering& l, const NetNode& node) {
  user_check(node.in.size() == 2, "it takes two operands");
  const bool first = l.is_number(node, 0), second = l.is_number(node, 1);
  user_check(!first || !second, "both operands are numbers");
  if (first || second) return with_number(l, node, first, l.number(node, first ? 0 : 1));
  const auto [computed, kept] = l.dtypes_of(node);
  const auto operand = [&, type = computed](size_t i) {
    const PermutedTensor x = l.in(node, i);
    return x.order.empty() ? x : PermutedTensor{l.in_dtype(x.value, type), x.order};
  };
  const Aligned both = align(l.b(), operand(0), operand(1));
  const ValueId y = l.b().op(node.op, {l.in_dtype(both.a, computed), l.in_dtype(both.b, computed)});
  l.set(node, {l.in_dtype(y, kept), both.order});
}

// Ones and zeros in f32, without a gradient, from the sign of a difference in f32.
void compare(Lowering& l, const NetNode& node) {
  user_check(node.in.size() == 2, "it compares two operands");
  Builder& b = l.b();
  const bool first = l.is_number(node, 0), second = l.is_number(node, 1);
  user_check(!first || !second, "both operands are numbers");
  const auto exact = [&](size_t i) {
    const PermutedTensor x = l.in(node, i);
    return PermutedTensor{b.op("detach", {l.in_dtype(x.value, DType::f32)}), x.order};
  };
  PermutedTensor apart;
  if (first || second) {
    apart = exact(first ? 1 : 0);
    apart.value = first ? shifted(b, scaled(b, apart.value, -1), l.number(node, 0))
                        : shifted(b, apart.value, -l.number(node, 1));
  } else {
    const Aligned both = align(b, exact(0), exact(1));
    apart = {b.op("sub", {both.a, both.b}), both.order};
  }
  // Whatever is above 0 is far above 1 when it is this much larger.
  const auto above_zero = [&](ValueId x, double factor) {
    return b.op("map", {scaled(b, x, factor * 3.0e38)},
                {{"of", std::string("clip")}, {"a", 0.0}, {"b", 1.0}});
  };
  ValueId y;
  if (node.op == "gt" || node.op == "le") {
    y = above_zero(apart.value, 1);
  } else if (node.op == "lt" || node.op == "ge") {
    y = above_zero(apart.value, -1);
  } else {
    y = above_zero(b.op("map", {apart.value}, {{"of", std::string("abs")}}), 1);
  }
  const bool turned = node.op == "le" || node.op == "ge" || node.op == "eq";
  l.set(node, {turned ? one_minus(b, y) : y, apart.order});
}

void cast(Lowering& l, const NetNode& node) {
  const PermutedTensor x = l.in(node, 0);
  l.set(node, {l.is_of_sum(x.value) ? x.value : l.stored(x.value), x.order});
}

void detach(Lowering& l, const NetNode& node) {
  const PermutedTensor x = l.in(node, 0);
  l.set(node, {l.b().op("detach", {x.value}), x.order});
}

void dropout(Lowering& l, const NetNode& node) {
  const PermutedTensor x = l.stored_in(node, 0);
  const double p = real_of(node, "p", 0);
  user_check(p >= 0 && p < 1, "a share of {} cannot be dropped", p);
  if (!l.training() || p == 0) return l.set(node, x);
  l.set(node, {l.b().op("dropout", {x.value, l.rng()},
                        {{"p", p}, {"stream", l.b().next_random_stream()}}),
               x.order});
}

// Ones, of which a share p is dropped in training, and the rest made larger for it.
void drop_mask(Lowering& l, const NetNode& node) {
  const ValueId ones = l.b().constant(1, {l.stated(node), l.options().storage});
  const double p = real_of(node, "p", 0);
  user_check(p >= 0 && p < 1, "a share of {} cannot be dropped", p);
  if (!l.training() || p == 0) return l.set_plain(node, ones);
  l.set_plain(node, l.b().op("dropout", {ones, l.rng()},
                             {{"p", p}, {"stream", l.b().next_random_stream()}}));
}

// Drawn anew in every step, and in tests, too.
void random(Lowering& l, const NetNode& node) {
  const DType dtype = node.attrs.has("whole") ? DType::f32 : l.options().storage;
  l.set_plain(node, l.b().op("random", {l.rng()},
                             {{"shape", dims_of(l.stated(node))},
                              {"kind", std::string(node.attrs.text("kind", ""))},
                              {"dtype", std::string(name_of(dtype))},
                              {"stream", l.b().next_random_stream()}}));
}

constexpr auto kRules = std::to_array<LoweringRule>({
    {"relu", same_name},
    {"sigmoid", same_name},
    {"tanh", same_name},
    {"silu", same_name},
    {"gelu", gelu},
    {"leaky_relu",
     [](Lowering& l, const NetNode& node) {
       unary(l, node, "leaky_relu", {{"slope", real_of(node, "slope", 0.01)}});
     }},
    {"abs", same_map},
    {"acos", same_map},
    {"asin", same_map},
    {"atan", same_map},
    {"ceil", same_map},
    {"cos", same_map},
    {"erf", same_map},
    {"exp", same_map},
    {"expm1", same_map},
    {"floor", same_map},
    {"hard_sigmoid", same_map},
    {"hard_swish", same_map},
    {"log", same_map},
    {"log1p", same_map},
    {"log_of_share", same_map},
    {"log_sigmoid", same_map},
    {"mish", same_map},
    {"reciprocal", same_map},
    {"round", same_map},
    {"rsqrt", same_map},
    {"sin", same_map},
    {"sqrt", same_map},
    {"square", same_map},
    {"trunc", same_map},
    {"clip", clip},
    {"pow", power},
    {"neg",
     [](Lowering& l, const NetNode& node) {
       unary(l, node, "scale", {{"factor", -1.0}});
     }},
    {"elu",
     [](Lowering& l, const NetNode& node) { mapped(l, node, "elu", real_of(node, "alpha", 1)); }},
    {"softplus",
     [](Lowering& l, const NetNode& node) {
       const double beta = real_of(node, "beta", 1);
       user_check(beta > 0, "its beta is {}, not above 0", beta);
       mapped(l, node, "softplus", beta);
     }},
    {"smooth_l1",
     [](Lowering& l, const NetNode& node) {
       const double beta = real_of(node, "beta", 1);
       if (beta == 0) return mapped(l, node, "abs");
       user_check(beta > 0, "its beta is {}, not above 0", beta);
       mapped(l, node, "smooth_l1", beta);
     }},
    {"add", arithmetic},
    {"sub", arithmetic},
    {"mul", arithmetic},
    {"div", arithmetic},
    {"eq", compare},
    {"ne", compare},
    {"lt", compare},
    {"le", compare},
    {"gt", compare},
    {"ge", compare},
    {"cast", cast},
    {"detach", detach},
    {"dropout", dropout},
    {"drop_mask", drop_mask},
    {"random", random},
});

}  // namespace

std::span<const LoweringRule> pointwise_rules() { return kRules; }

}  // namespace thimble
