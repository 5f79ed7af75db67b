// A codec that a budget chooses: what is chosen, against brute force; budgets that keep their promises.
#include "select/encodings.h"

#include <set>

#include "execute/costs.h"
#include "plan/schedule/recompute.h"
#include "select/choose.h"
#include "select/pareto_selector.h"
#include "support/plan_cases.h"
#include "support/sanitized.h"

namespace thimble {
namespace {

struct Case {
  ModelOptions model;
  std::string planner;
  std::string codec;
};

Recipe recipe_of(const ModelOptions& model, std::string_view codec,
                 std::string_view planner = "optimal") {
  Recipe recipe;
  recipe.model = model;
  recipe.optimizer = parse_optimizer("nesterov");
  recipe.device = "null";
  recipe.on.threads = 1;
  recipe.planner = planner;
  recipe.codec = parse_codec_spec(codec);
  return recipe;
}

// All that an automatic codec chooses from, planned for any budget.
struct Problem {
  explicit Problem(const Recipe& recipe)
      : machine(Machine::open(recipe)),
        plain(build_step(recipe, largest_shape(recipe), *machine)),
        options(encoded_options(plain)) {
    std::vector<Option*> all;
    for (const auto& option : options) all.push_back(option.get());
    selector = std::make_unique<ParetoSelector>(std::move(all), Dominators::every_plan);
  }
  ParetoSelector::Pick choose(Bytes budget) { return *selector->within(budget); }
  ParetoSelector::Pick most() { return choose(Bytes(INT64_MAX)); }
  Bytes least() { return selector->smallest().arena; }

  std::shared_ptr<Machine> machine;
  Step plain;
  std::vector<std::unique_ptr<StepOption>> options;
  std::unique_ptr<ParetoSelector> selector;
};

std::vector<Case> cases() {
  const ModelOptions mlp = {.name = "mlp:layers=4,hidden=64", .batch = 64};
  const ModelOptions wrn = {.name = "wrn-10-1", .batch = 8, .image = {16, 16, 3}};
  if (kSanitized) {
    return {{{.name = "mlp:layers=2,hidden=64", .batch = 64}, "optimal", "auto:fp16"}};
  }
  return {{mlp, "optimal", "auto:int2"}, {mlp, "optimal", "auto:fp16"}, {wrn, "keep_all", "auto"}};
}

TEST(Encodings, BudgetsAreObeyedAndMonotone) {
  size_t several = 0;  // cases in which more than one option is chosen
  for (const auto& [model, planner, codec] : cases()) {
    SCOPED_TRACE(fmt::format("{} {} {}", model.name, planner, codec));
    Problem problem(recipe_of(model, codec, planner));
    const Bytes most = problem.most().arena;
    const Bytes least = problem.least();
    ASSERT_LT(least, most);
    EXPECT_EQ(problem.choose(least).arena, least);
    const Bytes short_of = least - Bytes(1);
    EXPECT_FALSE(problem.selector->within(short_of));
    Recipe recipe = recipe_of(model, codec, planner);
    recipe.memory = short_of;
    const auto refused = plan_training(recipe);
    ASSERT_TRUE(std::holds_alternative<Infeasible>(refused));
    EXPECT_EQ(std::get<Infeasible>(refused).min_bytes, least);

    Bytes arena = least;
    double seconds = problem.choose(least).seconds;
    std::set<size_t> chosen;
    for (int i = 0; i <= 40; ++i) {
      const Bytes budget(least.count + (most - least).count * i / 40);
      const ParetoSelector::Pick pick = problem.choose(budget);
      chosen.insert(pick.option);
      ASSERT_LE(pick.arena, budget);
      ASSERT_GE(pick.arena, arena) << "at " << budget.count;
      ASSERT_LE(pick.seconds, seconds) << "at " << budget.count;
      if (pick.arena == arena && i > 0) continue;
      arena = pick.arena;
      seconds = pick.seconds;
      StepOption& option = *problem.options[pick.option];
      const Plan plan = option.plan_for(pick);
      ASSERT_EQ(plan.arena, arena);
      ASSERT_DOUBLE_EQ(plan.predicted_seconds, seconds);
      ASSERT_EQ(find_fault(option.step().model.graph, option.step().costs, plan), std::nullopt);
    }
    several += chosen.size() > 1 ? 1 : 0;
    EXPECT_EQ(problem.most().option, 0U);
  }
  // The exact plans of a small step may go down as far as those in 16 bits.
  EXPECT_GE(several, kSanitized ? 0U : 2U);
}

// The rule in the header, read off each rewrite's own plans: nothing gentler is as small and nearly as
// fast as what is chosen, and nothing that fits is faster by more than the factor.
TEST(Encodings, HarmIsDoneOnlyWhereItPays) {
  for (const auto& [model, planner, codec] : cases()) {
    if (planner != "optimal") continue;
    SCOPED_TRACE(codec);
    Problem problem(recipe_of(model, codec));
    std::vector<std::unique_ptr<OptimalPlanner>> planners;
    for (const auto& option : problem.options) {
      planners.push_back(std::make_unique<OptimalPlanner>(option->step().request()));
    }
    const Bytes most = problem.most().arena;
    const Bytes least = problem.least();
    for (int i = 0; i <= 8; ++i) {
      const Bytes budget(least.count + (most - least).count * i / 8);
      const ParetoSelector::Pick pick = problem.choose(budget);
      double fastest = 1e30;
      for (size_t r = 0; r < planners.size(); ++r) {
        const SchedulePool::Pick any = planners[r]->choose(budget);
        if (any.arena <= budget) fastest = std::min(fastest, any.seconds);
      }
      EXPECT_LE(pick.seconds, kNearTie * fastest);
      const SchedulePool::Pick exact = planners[0]->choose(pick.arena);
      if (pick.option == 0 || exact.arena > pick.arena) continue;
      const bool harmless = problem.options[pick.option]->risk() == 0;
      EXPECT_GT(exact.seconds, (harmless ? 1 : kNearTie) * pick.seconds);
    }
  }
}

// Every way of keeping a few activations (whole, in any codec of the ladder, or recomputed), laid
// out for real. The choice from the ladder's few is hardly slower than the best of all.
TEST(Encodings, IsNearBruteForce) {
  const Recipe recipe =
      recipe_of({.name = "mlp:layers=3,hidden=64", .batch = 128, .image = {8, 8, 1}}, "auto:int8");
  Problem problem(recipe);
  const Graph& plain = problem.options[0]->step().model.graph;
  const std::vector<Encodable> encodable = find_encodable(plain, recipe.codec);
  ASSERT_GE(encodable.size(), 3U);
  ASSERT_LE(encodable.size(), 5U);

  struct Point {
    Bytes arena;
    double seconds = 0;
  };
  std::vector<Point> all;
  const std::vector<Codec> codecs = {nullptr, parse_codec("fp16"), parse_codec("int8")};
  size_t ways = 1;
  for (size_t i = 0; i < encodable.size(); ++i) ways *= codecs.size();
  for (size_t way = 0; way < ways; ++way) {
    CodecSpec codec = recipe.codec;
    codec.chosen.emplace();
    size_t digits = way;
    for (const Encodable& value : encodable) {
      const Codec wanted = codecs[digits % codecs.size()];
      digits /= codecs.size();
      if (wanted == nullptr) continue;
      codec.chosen->push_back({plain[value.value].name, value.signs ? sign_codec() : wanted});
    }
    const Graph graph =
        make_training_graph(recipe.model, recipe.optimizer, {}, 1, {}, codec).model.graph;
    const Costs costs = gather_costs(graph, problem.machine->backend());
    const PlanRequest request = {.graph = graph, .costs = costs};
    const ForwardPass pass(graph);
    std::vector<size_t> free;  // what may be recomputed
    for (size_t v = 0; v < graph.values.size(); ++v) {
      const auto value = make_id<ValueId>(v);
      const bool large = graph[value].type.elements() >= 512;
      if (large && pass.is_forward[v] && pass.read_backward[v] && can_recompute(pass, value)) {
        free.push_back(v);
      }
    }
    ASSERT_LE(free.size(), 12U);
    for (size_t set = 0; set < size_t{1} << free.size(); ++set) {
      std::vector<bool> kept(graph.values.size(), true);
      for (size_t f = 0; f < free.size(); ++f) kept[free[f]] = (set >> f & 1) == 0;
      const ScheduleCost cost = cost_of(request, schedule_keeping(pass, kept));
      all.push_back({cost.live_peak, cost.seconds});  // which no arena can be below
    }
  }

  const Bytes most = problem.most().arena;
  const Bytes least = problem.least();
  double worst = 1;
  for (int i = 0; i <= 40; ++i) {
    const Bytes budget(least.count + (most - least).count * i / 40);
    double best = 1e30;
    for (const Point& point : all) {
      if (point.arena <= budget) best = std::min(best, point.seconds);
    }
    worst = std::max(worst, problem.choose(budget).seconds / best);
  }
  // The factor is what precision may cost; beyond it, few ways stand for all.
  EXPECT_LE(worst, 1.03 * kNearTie);
  for (const Point& point : all) EXPECT_LE(least, point.arena);
}

}  // namespace
}  // namespace thimble
