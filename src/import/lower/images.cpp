// Convolutions, pooling, resizing: images are [N,C,H,W] in the net and [N,H,W,C] here.
#include <algorithm>
#include <array>

#include "base/error.h"
#include "import/lowering.h"

namespace thimble {
namespace {

const Order kChannelsLast = {0, 2, 3, 1};
constexpr std::array<std::string_view, 3> kFusedWithBias = {"relu", "sigmoid", "tanh"};

// Settings of a convolution over one axis or two, as conv2d has them.
Attrs conv_attrs(const NetNode& node, size_t axes) {
  const auto both = [&](const char* name) {
    const std::vector<int64_t>& list = wholes_of(node, name, axes);
    return std::array{axes == 1 ? (name == std::string_view("padding") ? 0 : 1) : list[0],
                      list.back()};
  };
  Attrs attrs = {{"groups", whole_of(node, "groups")}};
  const auto set = [&](const char* down, const char* across, std::array<int64_t, 2> values) {
    attrs.set(down, values[0]);
    if (values[1] != values[0]) attrs.set(across, values[1]);
  };
  set("stride", "stride_w", both("stride"));
  set("pad", "pad_w", both("padding"));
  const std::array<int64_t, 2> dilation = both("dilation");
  if (dilation != std::array<int64_t, 2>{1, 1}) set("dilation", "dilation_w", dilation);
  return attrs;
}

// Images, or rows of numbers as images one pixel high.
ValueId images_of(Builder& b, const PermutedTensor& x) {
  if (x.order.size() == 4) return in_order(b, x, kChannelsLast);
  user_check(x.order.size() == 3, "it wants [N,C,H,W] or [N,C,L], not {} axes", x.order.size());
  const ValueId value = in_order(b, x, {0, 2, 1});
  const Shape shape = b.shape(value);
  return reshaped(b, value, {shape[0], 1, shape[1], shape[2]});
}

ValueId filter_of(Builder& b, const PermutedTensor& w, size_t axes) {
  user_check(w.order.size() == axes + 2, "its weight has {} axes, not {}", w.order.size(),
             axes + 2);
  return images_of(b, w);
}

void set_images(Lowering& l, const NetNode& node, ValueId y, size_t axes) {
  if (l.has(node, 2)) {
    y = l.b().op("bias_act", {y, plain(l.b(), l.stored_in(node, 2))},
                 {{"act", l.fused_activation(node, kFusedWithBias)}});
  }
  if (axes == 2) return l.set(node, {y, kChannelsLast});
  const Shape shape = l.b().shape(y);
  l.set(node, {reshaped(l.b(), y, {shape[0], shape[2], shape[3]}), {0, 2, 1}});
}

void conv(Lowering& l, const NetNode& node) {
  const PermutedTensor x = l.stored_in(node, 0);
  const size_t axes = x.order.size() == 3 ? 1 : 2;
  const ValueId from = images_of(l.b(), x), w = filter_of(l.b(), l.stored_in(node, 1), axes);
  set_images(l, node, l.b().op("conv2d", {from, w}, conv_attrs(node, axes)), axes);
}

// The data gradient of the convolution that goes the other way.
void conv_transpose(Lowering& l, const NetNode& node) {
  const PermutedTensor x = l.stored_in(node, 0);
  user_check(x.order.size() == 4, "it wants images [N,C,H,W]");
  const ValueId from = images_of(l.b(), x), w = filter_of(l.b(), l.stored_in(node, 1), 2);
  const Shape said = l.stated(node);
  user_check(said.rank() == 4, "it makes images [N,C,H,W]");
  Attrs attrs = conv_attrs(node, 2);
  attrs.set("in_h", said[2]).set("in_w", said[3]);
  set_images(l, node, l.b().op("conv2d_backward_data", {w, from}, attrs), 2);
}

void pool(Lowering& l, const NetNode& node) {
  const ValueId x = images_of(l.b(), l.stored_in(node, 0));
  Attrs attrs;
  for (const auto& [theirs, ours] :
       {std::pair("kernel", "kernel"), {"stride", "stride"}, {"padding", "pad"}}) {
    const std::vector<int64_t>& both = wholes_of(node, theirs, 2);
    user_check(both[0] == both[1], "its {} is {} by {}; only squares can be", theirs, both[0],
               both[1]);
    attrs.set(ours, both[0]);
  }
  l.set(node, {l.b().op(node.op, {x}, attrs), kChannelsLast});
}

void resize(Lowering& l, const NetNode& node) {
  const PermutedTensor given = l.stored_in(node, 0);
  user_check(given.order.size() == 4, "it wants images [N,C,H,W]");
  const ValueId x = images_of(l.b(), given);
  const std::vector<int64_t>& size = wholes_of(node, "size", 2);
  const std::string mode(node.attrs.text("mode", "nearest"));
  const Shape shape = l.b().shape(x);
  if (size[0] == shape[1] && size[1] == shape[2]) return l.set(node, {x, kChannelsLast});
  if (mode == "average" && size[0] == 1 && size[1] == 1) {
    const ValueId y = l.b().op("global_avg_pool", {x});
    return l.set(node, {reshaped(l.b(), y, {shape[0], 1, 1, shape[3]}), kChannelsLast});
  }
  l.set(node, {l.b().op("resample", {x}, {{"h", size[0]}, {"w", size[1]}, {"mode", mode}}),
               kChannelsLast});
}

constexpr auto kRules = std::to_array<LoweringRule>({{"conv", conv},
                                                     {"conv_transpose", conv_transpose},
                                                     {"max_pool", pool},
                                                     {"avg_pool", pool},
                                                     {"resize", resize}});

}  // namespace

std::span<const LoweringRule> image_rules() { return kRules; }

}  // namespace thimble
