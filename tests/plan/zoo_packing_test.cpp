// Layouts of the whole zoo under every policy that shares bytes: within a hundredth of what is
// live. Nothing runs: plans for the `null` device. The largest nets are in tests/slow.
#include "plan/policy.h"
#include "support/plan_cases.h"
#include "support/sanitized.h"

namespace thimble {
namespace {

struct Net {
  std::string label;
  ModelOptions options;
};

std::vector<Net> zoo() {
  if (kSanitized) {
    return {{"mlp", {.name = "mlp"}}, {"wrn_16_4", {.name = "wrn-16-4"}}};
  }
  return {{"mlp", {.name = "mlp"}},
          {"deep_mlp", {.name = "mlp:layers=40", .dropout = 0.1}},
          {"wrn_16_4", {.name = "wrn-16-4"}},
          {"wrn_28_2", {.name = "wrn-28-2"}},
          {"resnet50", {.name = "resnet-50"}},
          {"resnet152", {.name = "resnet-152"}},
          {"lstm", {.name = "lstm"}},
          {"unet", {.name = "unet"}},
          {"deep_unet", {.name = "unet:layers=5", .image = {128, 128, 3}}}};
}

class ZooPacking : public testing::TestWithParam<Net> {};

TEST_P(ZooPacking, IsWithinAHundredthOfThePeak) {
  const Graph graph =
      make_training_graph(GetParam().options, parse_optimizer("nesterov")).model.graph;
  const Costs costs = gather_costs(graph, *make_backend("null", 1));
  const auto expect_tight = [](const Plan& plan) {
    EXPECT_LE(static_cast<double>(plan.arena.count),
              1.01 * static_cast<double>(plan.peak_live.count))
        << plan.policy << " by " << plan.packer;
  };
  for (const Policy* policy : all_policies()) {
    if (policy->sharing != Sharing::sharing) continue;
    PlanRequest request = {.graph = graph, .costs = costs, .policy = std::string(policy->name)};
    expect_tight(std::get<Plan>(make_plan(request)));
    if (policy->name != "optimal") continue;  // keeps everything unless it has to save
    request.budget = Bytes(1);
    request.budget = std::get<Infeasible>(make_plan(request)).min_bytes;
    expect_tight(std::get<Plan>(make_plan(request)));
    request.budget = Bytes(request.budget->count * 5 / 4);
    expect_tight(std::get<Plan>(make_plan(request)));
  }
}

INSTANTIATE_TEST_SUITE_P(Zoo, ZooPacking, testing::ValuesIn(zoo()),
                         [](const auto& net) { return net.param.label; });

}  // namespace
}  // namespace thimble
