// The deepest nets of the zoo. Nothing runs: plans for the `null` device.
#include "plan/bytes/liveness.h"
#include "plan/policy.h"
#include "support/plan_cases.h"

namespace thimble {
namespace {

class DeepNet : public testing::Test {
 protected:
  explicit DeepNet(const ModelOptions& options = {.name = "resnet-1001", .batch = 32})
      : graph_(make_training_graph(options, parse_optimizer("nesterov")).model.graph),
        costs_(gather_costs(graph_, *make_backend("null", 1))) {}

  Plan plan(std::string_view policy) const {
    const Plan plan = std::get<Plan>(
        make_plan({.graph = graph_, .costs = costs_, .policy = std::string(policy)}));
    EXPECT_EQ(find_fault(graph_, costs_, plan), std::nullopt) << policy;
    return plan;
  }

  // The literature's feature maps: everything but weights, their gradients and the
  // optimizer's state. `gradients` are the bytes that those take in the plan.
  double feature_maps(const Plan& plan, Bytes gradients) const {
    Bytes rest = plan.arena - gradients;
    for (const Value& value : graph_.values) {
      const bool model = value.role == Role::weight || value.role == Role::optimizer_state;
      if (!value.producer.valid() && model) rest -= align_up(value.type.bytes());
    }
    return static_cast<double>(rest.count);
  }

  const Graph graph_;
  const Costs costs_;
};

TEST_F(DeepNet, ChenBudgetSavesWhatThePaperSaves) {
  const Plan none = plan("none"), chen = plan("chen_budget");
  Bytes gradients;  // in bytes of their own
  const Buffers buffers = assign_buffers(graph_, schedule_of(none), costs_, Sharing::none, 1);
  for (size_t b = 0; b < buffers.uses.size(); ++b) {
    if (buffers.roles[b] == Role::gradient) gradients += align_up(buffers.uses[b].size);
  }
  const double before = feature_maps(none, gradients);
  const double after = feature_maps(chen, Bytes(0));  // what gradients share is not taken off
  EXPECT_GE(before / after, 6.9) << before / after;   // 48 GB against 7 GB
  RecordProperty("ratio", fmt::format("{:.2f}", before / after));
  EXPECT_LE(chen.extra_flops, 0.34 * (chen.flops - chen.extra_flops));
}

TEST_F(DeepNet, IsPackedWithinAHundredthOfThePeak) {
  for (const Policy* policy : all_policies()) {
    if (policy->sharing != Sharing::sharing) continue;
    const Plan p = plan(policy->name);
    EXPECT_LE(static_cast<double>(p.arena.count), 1.01 * static_cast<double>(p.peak_live.count))
        << policy->name << " by " << p.packer;
  }
}

class LongSequence : public DeepNet {
 protected:
  LongSequence() : DeepNet({.name = "lstm:layers=4,hidden=1024,length=512", .batch = 64}) {}
};

TEST_F(LongSequence, IsPackedWithinAHundredthOfThePeak) {
  for (const Policy* policy : all_policies()) {
    if (policy->sharing != Sharing::sharing) continue;
    const Plan p = plan(policy->name);
    EXPECT_LE(static_cast<double>(p.arena.count), 1.01 * static_cast<double>(p.peak_live.count))
        << policy->name << " by " << p.packer;
  }
}

}  // namespace
}  // namespace thimble
