// Thirty small nets, and random budgets of each: no smaller budget gives a faster plan or a larger
// arena, whatever was asked before.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "select/technique_selector.h"
#include "small_nets.h"

namespace thimble {

// The first few take little to search.
inline std::vector<SmallNet> thirty_nets() {
  std::vector<SmallNet> nets;
  const auto add = [&](const std::string& name, Settings settings) {
    for (const char* tier : {"exact", "equivalent", "approximate"}) {
      nets.push_back({name + "_" + tier, with_tier(settings, tier)});
    }
  };
  add("mlp2", {{"model", "mlp"}, {"layers", 2}, {"hidden", 32}, {"batch", 16}});
  add("mlp9", {{"model", "mlp"}, {"layers", 9}, {"hidden", 24}, {"batch", 20}});
  add("lstm", {{"model", "lstm"}, {"length", 6}, {"hidden", 16}, {"batch", 6}});
  add("lstm_adam",
      {{"model", "lstm"}, {"length", 9}, {"layers", 2}, {"hidden", 8}, {"optimizer", "adam"}});
  add("wrn", {{"model", "wrn-10-1"}, {"image", {8, 8, 3}}, {"batch", 12}});
  add("wrn_sgd",
      {{"model", "wrn-10-1"}, {"image", {8, 8, 3}}, {"norm", "group"}, {"optimizer", "sgd"}});
  add("resnet", {{"model", "resnet-50"}, {"image", {32, 32, 3}}, {"batch", 6}});
  add("unet", {{"model", "unet"}, {"batch", 2}});
  add("gpt", {{"model", "gpt"}, {"layers", 2}, {"width", 24}, {"heads", 2}, {"length", 12}});
  add("dynamicconv", {{"model", "dynamicconv"},
                      {"width", 16},
                      {"heads", 2},
                      {"encoder", 1},
                      {"decoder", 1},
                      {"kernel", 3},
                      {"source-vocabulary", 90},
                      {"target-vocabulary", 80},
                      {"batch", 4},
                      {"length", 10}});
  return nets;
}

inline void expect_monotone(const SmallNet& net, int budgets, uint32_t seed) {
  SCOPED_TRACE(net.name);
  const Recipe requested = recipe_of(net.explicit_settings);
  const auto selector = [&] {
    return TechniqueSelector(requested, net.explicit_settings, Machine::open(requested));
  };
  TechniqueSelector asked = selector();
  const auto most = static_cast<double>(asked.requested().without_recompute().arena.count);
  const Bytes least = asked.smallest(asked.allow()).arena;
  std::mt19937 random(seed);
  // By their logarithm, from somewhat below the least.
  std::uniform_real_distribution<> share(-0.1, 1.05);
  std::vector<std::pair<Bytes, std::optional<PlanPoint>>> answers;
  for (int i = 0; i < budgets; ++i) {
    const Bytes budget(
        static_cast<int64_t>(static_cast<double>(least.count) *
                             std::pow(most / static_cast<double>(least.count), share(random))));
    answers.emplace_back(budget, asked.choose(budget));
  }
  TechniqueSelector fresh = selector();
  for (const auto& [budget, answer] : std::span(answers).last(3)) {
    const auto again = fresh.choose(budget);
    ASSERT_EQ(again.has_value(), answer.has_value()) << budget.count;
    if (!again) continue;
    EXPECT_EQ(again->seconds, answer->seconds) << budget.count;
    EXPECT_EQ(again->arena, answer->arena) << budget.count;
  }
  std::ranges::sort(answers, {}, [](const auto& answer) { return answer.first; });
  const PlanPoint* smaller = nullptr;  // of a smaller budget
  for (const auto& [budget, answer] : answers) {
    ASSERT_EQ(answer.has_value(), budget >= least) << budget.count;
    if (!answer) continue;
    EXPECT_LE(answer->arena, budget);
    if (smaller != nullptr) {
      EXPECT_LE(answer->seconds, smaller->seconds) << budget.count;
      EXPECT_GE(answer->arena, smaller->arena) << budget.count;
    }
    smaller = &*answer;
  }
}

}  // namespace thimble
