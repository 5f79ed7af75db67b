#include "plan/search/fill_slack.h"

#include "plan/bytes/live_bytes.h"
#include "plan/policy.h"
#include "support/plan_cases.h"
#include "support/random_steps.h"

namespace thimble {
namespace {

// No higher peak, no more time, nothing that was not there before, and sound.
void expect_better(const PlanRequest& request, const Schedule& plain, const Schedule& fuller) {
  const ScheduleCost before = cost_of(request, plain), after = cost_of(request, fuller);
  EXPECT_LE(after.live_peak, before.live_peak);
  EXPECT_LE(after.seconds, before.seconds * (1 + 1e-12));
  EXPECT_EQ(after.seconds, predicted_seconds(request, fuller));
  EXPECT_LE(fuller.calls.size(), plain.calls.size());
  EXPECT_EQ(find_fault(request.graph, request.costs, lay_out(request, fuller)), std::nullopt);
}

TEST(LiveBytes, AreThoseOfAPlainTable) {
  std::mt19937 random(3);
  for (const size_t calls : {1, 2, 7, 64, 100}) {
    std::vector<Bytes> table;
    for (size_t s = 0; s < calls; ++s) table.emplace_back(int64_t(random() % 100));
    LiveBytes live(table);
    for (int i = 0; i < 300; ++i) {
      size_t first = random() % calls, last = random() % calls;
      if (first > last) std::swap(first, last);
      const auto begin = table.begin() + int64_t(first), end = table.begin() + int64_t(last) + 1;
      ASSERT_EQ(live.most(int(first), int(last)), *std::max_element(begin, end));
      const Bytes bytes(int64_t(random() % 50) - 20);
      live.add(int(first), int(last), bytes);
      std::for_each(begin, end, [&](Bytes& at) { at += bytes; });
    }
  }
}

TEST(LiveBytes, OfBuffersAreInclusiveAndAligned) {
  const std::vector<BufferUse> uses = {{Bytes(64), 0, 2}, {Bytes(1), 2, 3}};
  EXPECT_EQ(live_by_call(uses), (std::vector<Bytes>{Bytes(64), Bytes(64), Bytes(128), Bytes(64)}));
  EXPECT_EQ(most_live(uses), Bytes(128));
  EXPECT_TRUE(live_by_call({}).empty());
  EXPECT_EQ(most_live({}), Bytes(0));
}

// Squares; the last reads `early`, which is recomputed for it.
//
//   call     0       1       2       3       4       5
//            early   first   second  third   early   last
//   live     1       1       1       1       2       2       and the weight; results overwrite
//   inputs
struct Valley {
  Valley() {
    Builder b(graph);
    const ValueId x = b.weight("x", kSquare, {Init::Kind::normal, 0.5});
    early = b.op("tanh", {x});
    const ValueId first = b.op("sigmoid", {early});
    const ValueId second = b.op("add", {first, first});
    const ValueId third = b.op("relu", {second});
    const ValueId last = b.op("add", {third, early});
    graph.results = {last};
    costs = flat_costs(graph);
  }
  Schedule repeating_in_front_of(NodeId reader) const {
    Schedule schedule;
    for (const Call& call : forward_order(graph)) {
      if (call.node == reader) schedule.calls.push_back({graph[early].producer, true});
      schedule.calls.push_back(call);
    }
    return schedule;
  }

  Graph graph;
  ValueId early;
  Costs costs;
};

TEST(Slack, KeepsWhatFitsBelowThePeak) {
  Valley valley;
  const NodeId reader = valley.graph[valley.graph.results[0]].producer;
  const Schedule plain = valley.repeating_in_front_of(reader);
  ASSERT_EQ(plain.calls.size(), valley.graph.nodes.size() + 1);
  const PlanRequest request{.graph = valley.graph, .costs = valley.costs};
  const Schedule fuller = drop_redundant_recomputes(request, plain);
  EXPECT_EQ(fuller.calls.size(), valley.graph.nodes.size());
  expect_better(request, plain, fuller);
}

TEST(Slack, KeepsNothingAtThePeak) {
  Valley valley;
  // Scratch makes the call in between the fullest, with no room for another square.
  valley.costs.nodes[2].workspace = Bytes(4096);
  const NodeId reader = valley.graph[valley.graph.results[0]].producer;
  const Schedule plain = valley.repeating_in_front_of(reader);
  const PlanRequest request{.graph = valley.graph, .costs = valley.costs};
  EXPECT_EQ(drop_redundant_recomputes(request, plain), plain);
}

TEST(Slack, RepeatsWhatIsMarkedToBeRepeated) {
  Valley valley;
  valley.graph.nodes[valley.graph[valley.early].producer.at()].mark = Mark::recompute;
  const NodeId reader = valley.graph[valley.graph.results[0]].producer;
  const Schedule plain = valley.repeating_in_front_of(reader);
  const PlanRequest request{.graph = valley.graph, .costs = valley.costs};
  EXPECT_EQ(drop_redundant_recomputes(request, plain), plain);
}

// The least time of all schedules that leave out some of the repetitions within the same peak.
double least_seconds(const PlanRequest& request, const Schedule& plain) {
  const ScheduleCost cost = cost_of(request, plain);
  std::vector<size_t> repeated;
  for (size_t s = 0; s < plain.calls.size(); ++s) {
    if (plain.calls[s].recompute) repeated.push_back(s);
  }
  double least = cost.seconds;
  for (uint32_t subset = 1; subset < (1u << repeated.size()); ++subset) {
    std::vector<Call> calls;
    for (size_t s = 0, r = 0; s < plain.calls.size(); ++s) {
      const bool left_out = plain.calls[s].recompute && (subset >> r++ & 1) != 0;
      const bool update = is_update(request.graph[plain.calls[s].node]);
      if (!left_out && !update) calls.push_back(plain.calls[s]);
    }
    const Schedule some = place_updates(request.graph, calls);
    const ScheduleCost now = cost_of(request, some);
    if (now.live_peak <= cost.live_peak) least = std::min(least, now.seconds);
  }
  return least;
}

TEST(Slack, SavesNearlyAllThatCanBeSavedInSmallSteps) {
  const auto backend = make_backend("null", 1);
  double saved = 0, possible = 0;
  int compared = 0;
  for (uint32_t seed = 0; seed < 150; ++seed) {
    const RandomStep call = random_step(seed);
    Costs costs = gather_costs(call.graph, *backend);
    std::mt19937 random(seed);
    for (NodeCost& cost : costs.nodes) cost.seconds = static_cast<double>(1 + random() % 5);
    const PlanRequest request{.graph = call.graph, .costs = costs};
    const Schedule plain = with_recomputation(call.graph, random, 0.15, 3);
    const auto repeats = std::count_if(plain.calls.begin(), plain.calls.end(),
                                       [](const Call& each) { return each.recompute; });
    SCOPED_TRACE(seed);
    const Schedule fuller = drop_redundant_recomputes(request, plain);
    expect_better(request, plain, fuller);
    if (repeats > 9) continue;
    const double before = predicted_seconds(request, plain);
    const double after = predicted_seconds(request, fuller), least = least_seconds(request, plain);
    EXPECT_GE(after, least);
    saved += before - after;
    possible += before - least;
    ++compared;
  }
  EXPECT_GT(compared, 50);
  EXPECT_GT(possible, 100);
  EXPECT_GE(saved, 0.9 * possible) << possible;
}

TEST(Slack, MakesNoPolicysScheduleWorse) {
  bool faster = false;
  for (const ModelOptions& options :
       {ModelOptions{.name = "wrn-16-2", .batch = 10},
        ModelOptions{.name = "resnet-50", .batch = 8},
        ModelOptions{.name = "lstm:layers=3,hidden=64,length=40", .batch = 8}, small_lstm_runs(),
        small_unet()}) {
    for (const int microbatches : {1, 3}) {
      const Graph graph =
          make_training_graph(options, parse_optimizer("nesterov"), {}, microbatches).model.graph;
      const Costs costs = gather_costs(graph, *make_backend("null", 1));
      for (const Policy* policy : all_policies()) {
        if (policy->name == "optimal") continue;
        SCOPED_TRACE(fmt::format("{} x {}, {}", options.name, microbatches, policy->name));
        const PlanRequest request{.graph = graph,
                                  .costs = costs,
                                  .sharing = policy->sharing,
                                  .number = policy->number.usual,
                                  .microbatches = microbatches};
        const Schedule plain = policy->schedule(request);
        const Schedule fuller = drop_redundant_recomputes(request, plain);
        expect_better(request, plain, fuller);
        expect_better(request, plain, drop_redundant_recomputes(request, plain, 1));
        faster |= fuller.calls.size() < plain.calls.size();
      }
    }
  }
  EXPECT_TRUE(faster);
}

}  // namespace
}  // namespace thimble
