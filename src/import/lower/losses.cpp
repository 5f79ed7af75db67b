// The cross-entropy; other losses are made of the ops that they are made of.
#include <algorithm>
#include <array>

#include "base/error.h"
#include "import/lowering.h"

namespace thimble {
namespace {

// Logits [N,C,...] and labels [N,...]: each place is a row, its classes last.
void cross_entropy(Lowering& l, const NetNode& node) {
  Builder& b = l.b();
  const PermutedTensor given = l.stored_in(node, 0);
  const int rank = static_cast<int>(given.order.size());
  user_check(rank >= 2, "it wants logits [N,C,...]");
  Order order = plain_order(rank);
  std::erase(order, 1);
  order.push_back(1);
  ValueId logits = in_order(b, given, order);
  const int64_t classes = b.shape(logits).back();
  const int64_t places = b.type(logits).elements() / std::max<int64_t>(1, classes);
  logits = reshaped(b, logits, {places, classes});
  const ValueId labels = reshaped(b, l.numbers_in(node, 1), {places});
  const int64_t ignored = ignored_label(node);
  const double smoothing = l.training() ? real_of(node, "label_smoothing", 0) : 0;
  const ValueId one = b.constant(1, {{1}, DType::f32});
  ValueId loss = b.op("softmax_cross_entropy", {logits, labels, one},
                      {{"label_smoothing", smoothing}, {"ignore_index", ignored}});
  const ValueId count = b.op("count_labels", {labels}, {{"ignore_index", ignored}});
  const std::string_view reduction = node.attrs.text("reduction", "mean");
  user_check(reduction == "mean" || reduction == "sum", "it is neither a mean nor a sum");
  if (reduction == "mean") {
    const std::string sum = node.out[0] + ".sum";
    const std::string weight = fmt::format("{}.counted.{}", node.in[1].value, ignored);
    l.set_value(sum, loss);
    l.set_value(weight, count);
    l.note_mean(node, {sum, weight, l.is_fed(node.in[1].value)});
    loss = b.op("div", {loss, count});
  }
  if (!l.reports()) {
    // Only a class that is ignored could be right and not count; most nets ignore none.
    Attrs settings;
    if (ignored >= 0 && ignored < classes) settings.set("ignore_index", ignored);
    l.report({.name = places == l.rows() ? "accuracy" : "share_right",
              .brief = "acc",
              .sum = b.op("count_correct", {logits, labels}, settings),
              .count = count,
              .share = true});
  }
  l.set(node, {reshaped(b, loss, {}), {}});
}

constexpr auto kRules = std::to_array<LoweringRule>({{"cross_entropy", cross_entropy}});

}  // namespace

std::span<const LoweringRule> loss_rules() { return kRules; }

}  // namespace thimble
