// Formats of frozen weights as candidates for a budget.
#include <gtest/gtest.h>

#include <algorithm>

#include "select/candidates.h"
#include "select/step_option.h"
#include "small_nets.h"

namespace thimble {
namespace {

std::vector<Change> changes_of(std::string_view technique, const Settings& settings,
                               NumericsTier allow, std::string device = "null") {
  Recipe requested = recipe_of(settings);
  requested.device = std::move(device);
  const auto machine = Machine::open(requested);
  StepOption plain({.recipe = requested}, *machine);
  for (std::vector<Change>& changes :
       choices_for(requested, settings, allow, plain.step().model.graph, machine->backend())) {
    if (changes.front().technique == technique) return std::move(changes);
  }
  return {};
}

std::vector<Change> formats_of(const Settings& settings, NumericsTier allow) {
  return changes_of("frozen", settings, allow);
}

Settings adapted_gpt() {
  return {{"model", "gpt"}, {"layers", 1}, {"heads", 2},      {"width", 16},
          {"length", 8},    {"batch", 2},  {"lora", "rank=2"}};
}

TEST(FrozenCandidates, GoFromFaithfulToSmall) {
  const std::vector<Change> changes = formats_of(adapted_gpt(), NumericsTier::approximate);
  ASSERT_EQ(changes.size(), 3u);
  const std::vector<std::string> names = {"bf16", "int8", "nf4"};
  Bytes before(INT64_MAX);
  double milder = 0;
  for (size_t i = 0; i < names.size(); ++i) {
    EXPECT_EQ(changes[i].settings.at("frozen"), names[i]);
    EXPECT_EQ(changes[i].tier, NumericsTier::approximate);
    EXPECT_GT(changes[i].risk, milder);
    milder = changes[i].risk;
    const Candidate candidate = with_changes(recipe_of(adapted_gpt()), {changes[i]}).value();
    const auto machine = Machine::open(candidate.recipe);
    StepOption option(candidate, *machine);
    Bytes frozen;
    for (const Value& value : option.step().model.graph.values) {
      if (value.role == Role::frozen && !value.producer.valid()) frozen += value.type.bytes();
    }
    EXPECT_LT(frozen, before) << names[i];
    before = frozen;
  }
}

// Scratch of the loss, beside a vocabulary that is not trained.
TEST(FrozenCandidates, FewerLogitsAtATimeTakeLess) {
  Settings large = adapted_gpt();
  large["vocabulary"] = 3000;
  large["length"] = 256;
  // The op's own 64 rows are few enough, but for heads too large for a cache: those have 256.
  EXPECT_TRUE(changes_of("loss rows", large, NumericsTier::equivalent, "cpu").empty());
  large["width"] = 512;
  const std::vector<Change> changes =
      changes_of("loss rows", large, NumericsTier::equivalent, "cpu");
  ASSERT_EQ(changes.size(), 1u);
  const Candidate candidate = with_changes(recipe_of(large), changes).value();
  const auto machine = Machine::open(candidate.recipe);
  StepOption option(candidate, *machine);
  const std::vector<Node>& nodes = option.step().model.graph.nodes;
  EXPECT_TRUE(std::ranges::any_of(
      nodes, [](const Node& node) { return node.attrs.integer("rows_at_once", 0) == 64; }));
  EXPECT_TRUE(changes_of("loss rows", large, NumericsTier::exact, "cpu").empty());
  Settings said = large;
  said["loss-rows"] = 100;
  EXPECT_TRUE(changes_of("loss rows", said, NumericsTier::equivalent, "cpu").empty());
  Settings whole = large;
  whole.erase("lora");
  EXPECT_TRUE(changes_of("loss rows", whole, NumericsTier::equivalent, "cpu").empty());
}

TEST(FrozenCandidates, AreOfferedWhereSomethingIsFrozenAndNothingWasSaid) {
  EXPECT_TRUE(formats_of(adapted_gpt(), NumericsTier::exact).empty());
  Settings said = adapted_gpt();
  said["frozen"] = "bf16";
  EXPECT_TRUE(formats_of(said, NumericsTier::approximate).empty());
  Settings whole = adapted_gpt();
  whole.erase("lora");
  EXPECT_TRUE(formats_of(whole, NumericsTier::approximate).empty());
}

}  // namespace
}  // namespace thimble
