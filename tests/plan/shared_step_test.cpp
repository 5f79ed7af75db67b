// Microbatches of two sizes in one step: two plans, one arena.
#include "plan/verify/verify_shared_arena.h"
#include "select/choose.h"
#include "support/plan_cases.h"

namespace thimble {
namespace {

PlannedTraining uneven(const ModelOptions& model, int64_t batch, int64_t microbatch, bool fold,
                       const std::string& planner = "keep_all") {
  Recipe recipe;
  recipe.model = model;
  recipe.model.batch = batch;
  recipe.microbatch = microbatch;
  recipe.optimizer = parse_optimizer("sgd");
  recipe.optimizer.fold = fold;
  recipe.planner = planner;
  recipe.on.threads = 1;
  return std::get<PlannedTraining>(plan_training(recipe));
}

TEST(SharedStep, TheLastMicrobatchFitsIntoTheArenaOfTheOthers) {
  for (const ModelOptions& model : {small_mlp(), small_wrn(), small_lstm()}) {
    for (const bool fold : {false, true}) {
      for (const char* planner : {"keep_all", "sqrt_segments", "log_recursive"}) {
        const PlannedTraining call = uneven(model, 10, 4, fold, planner);
        ASSERT_NE(call.rest(), nullptr);
        EXPECT_EQ(call.microbatches, (Microbatches{10, 4, 2, 2}));
        EXPECT_LE(call.rest()->plan.arena, call.plan().arena) << model.name;
        EXPECT_EQ(call.plan().microbatches, 3);
      }
    }
  }
}

TEST(SharedStep, OneFullMicrobatchAndARestAreALoop) {
  const PlannedTraining call = uneven(small_wrn(), 10, 9, false);
  EXPECT_EQ(call.microbatches, (Microbatches{10, 9, 1, 1}));
  EXPECT_EQ(call.plan().microbatches, 2);
}

TEST(SharedStep, TheStepIsPricedWithTheSmallerOne) {
  const PlannedTraining whole = uneven(small_wrn(), 8, 4, false);
  const PlannedTraining less = uneven(small_wrn(), 7, 4, false);
  EXPECT_EQ(whole.rest(), nullptr);
  const Plan priced = priced_as_a_whole(less);
  EXPECT_LT(priced.predicted_seconds, whole.plan().predicted_seconds);
  EXPECT_LT(priced.flops, whole.plan().flops);
  // Convolutions of 4 + 3 rows are 7/8 of those of 4 + 4; updates cost the same.
  EXPECT_GT(priced.flops, whole.plan().flops * 7 / 8);
}

TEST(SharedStep, PlansThatCarryElsewhereAreFound) {
  for (const ModelOptions& model : {small_wrn(), small_lstm()}) {
    for (const bool fold : {false, true}) {
      const PlannedTraining call = uneven(model, 10, 4, fold);
      const Graph& full = call.graph();
      const Graph& rest = call.rest()->model.graph;
      EXPECT_EQ(find_disagreement(full, call.plan(), rest, call.rest()->plan), std::nullopt);
      for (size_t s = 0; s < call.plan().calls.size(); ++s) {
        if (full[call.plan().calls[s].node].phase != Phase::prologue) continue;
        Plan moved = call.plan();
        moved.calls[s].outputs[0] += Bytes(64);
        EXPECT_TRUE(find_disagreement(full, moved, rest, call.rest()->plan).has_value());
      }
      for (size_t v = 0; v < full.values.size(); ++v) {
        const Value& value = full.values[v];
        if (value.producer.valid() || !is_persistent(value.role)) continue;
        if (value.role == Role::constant) continue;
        Plan moved = call.plan();
        moved.sources[v] += Bytes(64);
        EXPECT_TRUE(find_disagreement(full, moved, rest, call.rest()->plan).has_value())
            << value.name;
      }
    }
  }
}

TEST(SharedStep, ConstantsOfTheOthersAreLeftAlone) {
  const PlannedTraining call = uneven(small_lstm(), 10, 4, false);
  const Graph& full = call.graph();
  const Graph& rest = call.rest()->model.graph;
  // The first state of 4 rows has no twin among those of 2.
  const auto own = std::find_if(full.values.begin(), full.values.end(), [&](const Value& value) {
    return value.role == Role::constant && !rest.find(value.name).valid();
  });
  ASSERT_NE(own, full.values.end());
  Plan plan = call.rest()->plan;
  for (PlannedCall& planned : plan.calls) {
    if (rest[planned.node].phase != Phase::per_microbatch) continue;
    planned.outputs[0] = call.plan().sources[static_cast<size_t>(own - full.values.begin())];
    break;
  }
  EXPECT_TRUE(find_disagreement(full, call.plan(), rest, plan).has_value());
}

// Scratch is written, too: over a constant that the others keep it is a fault, to the byte.
TEST(SharedStep, ScratchOverWhatTheOthersKeepIsFound) {
  const PlannedTraining all = uneven(small_lstm(), 10, 4, false);
  const Graph& full = all.graph();
  const Graph& rest = all.rest()->model.graph;
  std::vector<std::pair<int64_t, int64_t>>
      kept;  // first bytes of such constants, and those behind them
  for (size_t v = 0; v < full.values.size(); ++v) {
    const Value& value = full.values[v];
    if (value.role != Role::constant || rest.find(value.name).valid()) continue;
    const int64_t at = all.plan().sources[v].count;
    kept.emplace_back(at, at + value.type.bytes().count);
  }
  ASSERT_FALSE(kept.empty());
  for (const auto& [begin, end] : kept) {
    for (const auto& [from, size] : {std::pair(begin, end - begin),
                                     {begin - 64, int64_t{64}},
                                     {begin - 64, int64_t{65}},
                                     {end - 1, int64_t{1}},
                                     {end, int64_t{64}},
                                     {begin, int64_t{0}}}) {
      SCOPED_TRACE(fmt::format("{} bytes from {}, of [{}, {})", size, from, begin, end));
      const bool over =
          size > 0 && std::ranges::any_of(kept, [&, from = from, size = size](auto& k) {
            return from < k.second && k.first < from + size;
          });
      for (size_t at = 0; at < all.rest()->plan.calls.size(); at += 11) {
        Plan plan = all.rest()->plan;
        plan.calls[at].workspace_at = Bytes(from);
        plan.calls[at].workspace_size = Bytes(size);
        EXPECT_EQ(find_disagreement(full, all.plan(), rest, plan).has_value(), over);
      }
    }
  }
}

// By hand, call by call: what is run in every micro-batch, in the smaller last one by its own plan.
TEST(SharedStep, RecomputationOfASmallerOneCountsAsItIsPlanned) {
  int repeats = 0;
  for (const char* planner : {"keep_all", "sqrt_segments", "log_recursive", "mirror"}) {
    SCOPED_TRACE(planner);
    const PlannedTraining all = uneven(small_wrn(), 10, 4, false, planner);
    const auto repeated = [](const PlannedStep& step, bool each) {
      double flops = 0;
      for (const PlannedCall& call : step.plan.calls) {
        const bool inside = step.model.graph[call.node].phase == Phase::per_microbatch;
        if (call.recompute && inside == each) flops += step.costs.nodes[call.node.at()].flops;
      }
      return flops;
    };
    const double expected =
        2 * repeated(all.full(), true) + repeated(all.full(), false) + repeated(*all.rest(), true);
    EXPECT_DOUBLE_EQ(priced_as_a_whole(all).extra_flops, expected);
    repeats += expected > 0 ? 1 : 0;
  }
  EXPECT_GE(repeats, 2) << "or nothing was asked";
}

}  // namespace
}  // namespace thimble
