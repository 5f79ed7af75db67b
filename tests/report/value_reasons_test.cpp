#include "report/explain/value_reasons.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "report/frontier.h"
#include "report/svg_chart.h"
#include "select/choose.h"

namespace thimble {
namespace {

PlannedTraining planned(const std::string& planner, const std::string& codec = "none") {
  Recipe recipe;
  recipe.model = {.name = "wrn-10-1", .batch = 8};
  recipe.device = "null";
  recipe.planner = planner;
  const auto fields = fields_of(recipe);
  find_field(fields, "codec")->set(codec);
  return std::get<PlannedTraining>(plan_training(recipe));
}

std::vector<Why> whys(const PlannedTraining& step, double price = 0) {
  WhyRequest request = {.graph = step.graph(), .costs = step.full().costs, .plan = step.plan()};
  for (const Encoded& e : find_encoded(step.graph())) {
    request.encoded.push_back({e.value, std::string(name_of(e.codec)), e.code});
  }
  request.price = price;
  return explain_values(request);
}

int count(const std::vector<Why>& all, std::string_view fate, std::string_view said = "") {
  int found = 0;
  for (const Why& why : all) {
    EXPECT_FALSE(why.fate.empty());
    EXPECT_FALSE(why.reason.empty());
    if (why.fate == fate && why.reason.find(said) != std::string::npos) ++found;
  }
  return found;
}

TEST(Why, APlanThatKeepsEverythingSaysSo) {
  const std::vector<Why> all = whys(planned("keep_all"));
  EXPECT_EQ(count(all, "recomputed"), 0);
  EXPECT_GT(count(all, "kept", "nothing is recomputed"), 5);
  EXPECT_GT(count(all, "kept between steps"), 10);
}

TEST(Why, WhatIsComputedAgainCarriesItsPrice) {
  const PlannedTraining step = planned("sqrt_segments");
  const std::vector<Why> all = whys(step, 1e9);
  EXPECT_GT(count(all, "recomputed", "that a MiB costs here"), 3);
  // As many as the plan's repeated calls make and the backward pass reads.
  for (size_t v = 0; v < all.size(); ++v) {
    if (all[v].fate != "recomputed") continue;
    const NodeId maker = step.graph().values[v].producer;
    EXPECT_TRUE(std::ranges::any_of(step.plan().calls, [&](const PlannedCall& call) {
      return call.recompute && call.node == maker;
    }));
  }
  EXPECT_EQ(count(whys(step), "recomputed", "that a MiB costs here"), 0);  // no price, no word
}

// Else it would seem that what is cheap to compute again is kept for nothing.
TEST(Why, WhatOthersAreComputedAgainFromSaysSo) {
  const PlannedTraining step = planned("drop_cheap");
  const std::vector<Why> all = whys(step, 1e9);
  EXPECT_GT(count(all, "kept", "recomputed from it"), 0);
  for (size_t v = 0; v < all.size(); ++v) {
    if (all[v].reason.find("recomputed from it") == std::string::npos) continue;
    EXPECT_TRUE(std::ranges::any_of(step.plan().calls, [&](const PlannedCall& call) {
      const auto& inputs = step.graph()[call.node].inputs;
      return call.recompute && std::ranges::find(inputs, make_id<ValueId>(v)) != inputs.end();
    }));
  }
}

TEST(Why, CodesSayWhatTheyStandFor) {
  const std::vector<Why> all = whys(planned("keep_all", "int8"));
  EXPECT_GT(count(all, "kept encoded", "the backward pass reads it from int8"), 3);
  EXPECT_GT(count(all, "kept", "the int8 code of"), 3);
}

TEST(Frontier, ThePriceOfMemoryIsTheWayToTheNextFasterPlan) {
  const auto point = [](const char* policy, int64_t mebibytes, double ms) {
    return FrontierPoint{.policy = policy, .arena = Bytes(mebibytes << 20), .milliseconds = ms};
  };
  const std::vector<FrontierPoint> points = {point("optimal", 10, 100), point("optimal", 20, 60),
                                             point("optimal", 40, 50), point("mirror", 12, 1)};
  EXPECT_DOUBLE_EQ(price_of_memory(points, points[0]), 4);
  EXPECT_DOUBLE_EQ(price_of_memory(points, points[1]), 0.5);
  EXPECT_DOUBLE_EQ(price_of_memory(points, points[2]), 0);
}

TEST(SvgTicks, AreRoundAndInsideTheirRange) {
  std::vector<std::string> labels;
  for (const Tick& tick : byte_ticks(0, 100 << 20, 8)) labels.push_back(tick.label);
  EXPECT_EQ(labels, (std::vector<std::string>{"0", "16 MiB", "32 MiB", "48 MiB", "64 MiB", "80 MiB",
                                              "96 MiB"}));
  labels.clear();
  for (const Tick& tick : decimal_ticks(0, 339, 10)) labels.push_back(tick.label);
  EXPECT_EQ(labels, (std::vector<std::string>{"0", "50", "100", "150", "200", "250", "300"}));
}

}  // namespace
}  // namespace thimble
