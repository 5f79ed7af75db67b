// Layouts of the whole zoo under every policy that shares bytes: within a hundredth of what is
// live. Nothing runs: plans for the `null` device. The largest nets are in tests/slow.
#include "plan/policy.h"
#include "support/plan_cases.h"

namespace thimble {
namespace {

struct Net {
  std::string label;
  ModelOptions options;
};

std::vector<Net> zoo() {
  return {{"mlp", {.name = "mlp"}},
          {"deep_mlp", {.name = "mlp", .dropout = 0.1, .layers = 40}},
          {"wrn_16_4", {.name = "wrn-16-4"}},
          {"wrn_28_2", {.name = "wrn-28-2"}},
          {"resnet50", {.name = "resnet-50"}},
          {"resnet152", {.name = "resnet-152"}},
          {"lstm", {.name = "lstm"}},
          {"unet", {.name = "unet"}},
          {"deep_unet", {.name = "unet", .image = {128, 128, 3}, .layers = 5}}};
}

class ZooPacking : public testing::TestWithParam<Net> {};

TEST_P(ZooPacking, IsWithinAHundredthOfThePeak) {
  const Graph graph =
      make_training_graph(GetParam().options, parse_optimizer("nesterov")).model.graph;
  const Costs costs = gather_costs(graph, *make_backend("null", 1));
  Bytes whole;
  for (const Policy* policy : all_policies()) {
    if (policy->sharing != Sharing::sharing) continue;
    const PlanRequest request = {
        .graph = graph, .costs = costs, .policy = std::string(policy->name)};
    const Plan plan = std::get<Plan>(make_plan(request));
    if (policy->name == "keep_all") whole = plan.arena;
    EXPECT_LE(static_cast<double>(plan.arena.count),
              1.01 * static_cast<double>(plan.peak_live.count))
        << policy->name << " by " << plan.packer;
  }
  // optimal keeps everything unless it has to save.
  const Plan half = std::get<Plan>(make_plan(
      {.graph = graph, .costs = costs, .budget = Bytes(whole.count * 2 / 3), .policy = "optimal"}));
  EXPECT_LE(static_cast<double>(half.arena.count),
            1.01 * static_cast<double>(half.peak_live.count));
}

INSTANTIATE_TEST_SUITE_P(Zoo, ZooPacking, testing::ValuesIn(zoo()),
                         [](const auto& net) { return net.param.label; });

}  // namespace
}  // namespace thimble
