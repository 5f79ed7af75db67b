#include "transform/loss_scale.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/error.h"

namespace thimble {
namespace {

using Kind = LossScaling::Kind;
constexpr DType kScalar = DType::f32;
// All gradients wait for the last one anyway; counting some of them together takes fewer kernels.
constexpr size_t kCountedAtOnce = 32;

}  // namespace

LossScaling parse_loss_scaling(std::string_view text) {
  LossScaling scaling;
  if (text == "none") return scaling;
  if (text == "dynamic") {
    scaling.kind = Kind::dynamic;
    return scaling;
  }
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), scaling.start);
  user_check(error == std::errc() && end == text.data() + text.size() &&
                 std::isfinite(scaling.start) && scaling.start > 0,
             "--loss-scale is dynamic, none or a number above 0, not '{}'", text);
  scaling.kind = Kind::fixed;
  return scaling;
}

std::string name_of(const LossScaling& scaling) {
  if (scaling.kind == Kind::fixed) return fmt::format("{}", scaling.start);
  return scaling.kind == Kind::none ? "none" : "dynamic";
}

void check_loss_scaling(const LossScaling& s) {
  const auto positive = [](double value) { return std::isfinite(value) && value > 0; };
  user_check(
      positive(s.start) && positive(s.floor) && s.start >= s.floor,
      "a loss scale starts at or above its floor, both above 0; not at {} with a floor of {}",
      s.start, s.floor);
  user_check(s.growth_interval >= 1, "a loss scale grows after at least one clean step, not {}",
             s.growth_interval);
  user_check(std::isfinite(s.growth) && s.growth >= 1,
             "a loss scale grows by a factor of at least 1, not {}", s.growth);
  user_check(s.backoff > 0 && s.backoff < 1,
             "a loss scale backs off by a factor between 0 and 1, not {}", s.backoff);
}

ValueId add_loss_scale(Graph& graph, const LossScaling& scaling) {
  Builder b(graph);
  if (scaling.kind == Kind::dynamic) return b.input("loss_scale", {{1}, kScalar});
  return b.constant(scaling.kind == Kind::fixed ? scaling.start : 1, {{1}, kScalar});
}

Unscaling add_unscaling(Builder& b, ValueId loss_scale, std::span<const ValueId> gradients,
                        const LossScaling& scaling, const RanksSpec& in_parts) {
  if (scaling.kind == Kind::none) return {};
  if (scaling.kind == Kind::fixed) return {b.constant(1 / scaling.start, {{1}, kScalar}), {}};
  ValueId overflow =
      b.op("fill", {}, {{"value", 0.0}, {"shape", std::vector<int64_t>{1}}, {"dtype", "f32"}});
  for (size_t first = 0; first < gradients.size(); first += kCountedAtOnce) {
    const auto some = gradients.subspan(first, std::min(kCountedAtOnce, gradients.size() - first));
    overflow = b.accumulate("count_nonfinite", {some.begin(), some.end()}, {}, {overflow}).front();
  }
  if (in_parts.several()) overflow = add_sum_over_ranks(b, overflow, in_parts);
  return {b.op("gradient_factor", {loss_scale, overflow}), overflow};
}

}  // namespace thimble
