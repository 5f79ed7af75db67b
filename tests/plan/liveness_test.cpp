#include "plan/bytes/liveness.h"

#include "support/plan_cases.h"

namespace thimble {
namespace {

// Buffers of keep_all in node order.
Buffers buffers_of(const Graph& graph, Sharing sharing = Sharing::sharing, int microbatches = 1,
                   Bytes workspace = {}) {
  verify_graph(graph);
  Schedule schedule;
  for (size_t n = 0; n < graph.nodes.size(); ++n) schedule.calls.push_back({make_id<NodeId>(n)});
  return assign_buffers(graph, schedule, flat_costs(graph, workspace), sharing, microbatches);
}

void expect_use(const Buffers& buffers, int buffer, int64_t size, int first, int last) {
  const BufferUse& use = buffers.uses.at(static_cast<size_t>(buffer));
  EXPECT_EQ(use.size, Bytes(size));
  EXPECT_EQ(use.first, first);
  EXPECT_EQ(use.last, last);
}

TEST(Buffers, ALastReaderOverwritesItsInput) {
  Graph graph;
  Builder b(graph);
  const ValueId x = b.input("x", kSquare);
  const ValueId y = b.op("scale", {x}, {{"factor", 2.0}});  // 0
  const ValueId early = b.op("relu", {y});                  // 1: y is read again
  const ValueId late = b.op("tanh", {y});                   // 2: now it is not
  graph.results = {b.op("add", {early, late})};             // 3
  const Buffers buffers = buffers_of(graph);
  EXPECT_EQ(buffers.calls[0].outputs[0], buffers.sources[x.at()]);  // inputs are nobody's to keep
  EXPECT_NE(buffers.calls[1].outputs[0], buffers.calls[1].inputs[0]);
  EXPECT_EQ(buffers.calls[2].outputs[0], buffers.calls[2].inputs[0]);
  EXPECT_EQ(buffers.calls[3].outputs[0], buffers.calls[3].inputs[0]);
  ASSERT_EQ(buffers.uses.size(), 2u);
  expect_use(buffers, buffers.sources[x.at()], 256, 0, 3);
  expect_use(buffers, buffers.calls[1].outputs[0], 256, 1, 3);
}

TEST(Buffers, NothingIsOverwrittenWithoutSharing) {
  Graph graph;
  Builder b(graph);
  graph.results = {b.op("relu", {b.op("tanh", {b.input("x", kSquare)})})};
  const Buffers buffers = buffers_of(graph, Sharing::none);
  ASSERT_EQ(buffers.uses.size(), 3u);
  EXPECT_NE(buffers.calls[0].outputs[0], buffers.calls[0].inputs[0]);
  EXPECT_NE(buffers.calls[1].outputs[0], buffers.calls[1].inputs[0]);
  EXPECT_EQ(buffers_of(graph, Sharing::in_place).uses.size(), 1u);
}

TEST(Buffers, AnInputOfAnotherSizeIsNotOverwritten) {
  Graph graph;
  Builder b(graph);
  const ValueId bias = b.op("relu", {b.input("bias", {{8}, DType::f32})});
  const ValueId x = b.input("x", kSquare);
  graph.results = {b.op("add", {bias, x})};  // broadcasts: only x has the size of the sum
  const Buffers buffers = buffers_of(graph);
  EXPECT_EQ(buffers.calls[1].outputs[0], buffers.sources[x.at()]);
}

TEST(Buffers, AnInputTheOpReadsTwiceMayGoOnlyIfBothPlacesAllowIt) {
  Graph graph;
  Builder b(graph);
  const ValueId x = b.op("copy", {b.input("x", kSquare)});
  const ValueId product = b.op("matmul", {x, x});  // never in place
  graph.results = {b.op("mul", {product, product})};
  const Buffers buffers = buffers_of(graph);
  EXPECT_NE(buffers.calls[1].outputs[0], buffers.calls[1].inputs[0]);
  EXPECT_EQ(buffers.calls[2].outputs[0], buffers.calls[2].inputs[0]);  // both places allow it
}

TEST(Buffers, TwoOutputsNeverTakeOverTheSameInput) {
  // lstm_cell's new cell state may overwrite the old one (input 2), its hidden state nothing.
  Graph graph;
  Builder b(graph);
  const ValueId c = b.op("copy", {b.input("c", {{2, 4}, DType::f32})});
  const auto cell =
      b.apply("lstm_cell",
              {b.input("x", {{2, 4}, DType::f32}), c, c, b.weight("wx", {{16, 4}, DType::f32}, {}),
               b.weight("wh", {{16, 4}, DType::f32}, {}), b.weight("b", {{16}, DType::f32}, {})});
  graph.results = {cell[0], cell[1]};
  const Buffers buffers = buffers_of(graph);
  const std::vector<int>& outputs = buffers.calls[1].outputs;
  EXPECT_NE(outputs[0], outputs[1]);
  // The state stands in place of input 1 as well, which no output may overwrite.
  EXPECT_EQ(std::count(outputs.begin(), outputs.end(), buffers.calls[1].inputs[1]), 0);
}

TEST(Buffers, ViewsShareTheBytesAndKeepThemAlive) {
  Graph graph;
  Builder b(graph);
  const ValueId x = b.op("copy", {b.input("x", kSquare)});                           // 0
  const ValueId flat = b.op("reshape", {x}, {{"shape", std::vector<int64_t>{64}}});  // 1
  const ValueId y = b.op("relu", {x});     // 2: last reader of x, but its bytes are read at 3
  const ValueId z = b.op("tanh", {flat});  // 3
  graph.results = {y, z};
  const Buffers buffers = buffers_of(graph);
  const int shared = buffers.calls[0].outputs[0];
  EXPECT_EQ(buffers.calls[1].outputs[0], shared);
  EXPECT_NE(buffers.calls[2].outputs[0], shared);
  EXPECT_EQ(buffers.calls[3].outputs[0], shared);
  EXPECT_EQ(buffers_of(graph, Sharing::none).calls[1].outputs[0],
            buffers_of(graph, Sharing::none).calls[0].outputs[0]);
}

TEST(Buffers, SumsTakeOverWhatTheyAreAddedInto) {
  Graph graph;
  Builder b(graph);
  const ValueId x = b.input("x", kSquare);
  const ValueId first = b.op("scale", {x}, {{"factor", 2.0}});                // 0
  const ValueId sum = b.accumulate("tanh_backward", {x, x}, {}, {first})[0];  // 1
  graph.results = {b.op("relu", {sum})};                                      // 2
  for (const Sharing sharing : {Sharing::none, Sharing::in_place, Sharing::sharing}) {
    const Buffers buffers = buffers_of(graph, sharing);
    EXPECT_EQ(buffers.calls[1].outputs[0], buffers.calls[0].outputs[0]);
    expect_use(buffers, buffers.calls[0].outputs[0], 256, 0, 2);
  }
}

TEST(Buffers, UpdatesHappenAtTheWeightsOwnBytes) {
  Graph graph;
  Builder b(graph);
  const ValueId w = b.weight("w", kSquare, {});
  const ValueId m = b.state("m", kSquare);
  const ValueId gradient = b.op("copy", {b.input("g", kSquare)});
  b.apply("update", {w, gradient, m, b.input("rate", {{1}, DType::f32})},
          {{"rule", "sgd"}, {"momentum", 0.9}, {"weight_decay", 0.0}});
  for (const Sharing sharing : {Sharing::none, Sharing::in_place, Sharing::sharing}) {
    const Buffers buffers = buffers_of(graph, sharing);
    EXPECT_EQ(buffers.calls[1].outputs[0], buffers.sources[w.at()]);
    EXPECT_EQ(buffers.calls[1].outputs[1], buffers.sources[m.at()]);
  }
}

TEST(Buffers, PersistentValuesAreNeverOverwritten) {
  Graph graph;
  Builder b(graph);
  const ValueId w = b.weight("w", kSquare, {});
  const ValueId one = b.constant(1, kSquare);
  const ValueId flat = b.op("reshape", {w}, {{"shape", std::vector<int64_t>{64}}});  // 0
  const ValueId y = b.op("relu", {flat});  // 1: the last reader, of a weight's bytes
  const ValueId z = b.op("scale", {one}, {{"factor", 3.0}});  // 2
  graph.results = {y, z};
  const Buffers buffers = buffers_of(graph);
  for (const ValueId kept : {w, one}) {
    const int buffer = buffers.sources[kept.at()];
    EXPECT_TRUE(buffers.persistent[static_cast<size_t>(buffer)]);
    expect_use(buffers, buffer, 256, 0, 2);
  }
  EXPECT_NE(buffers.calls[1].outputs[0], buffers.sources[w.at()]);
  EXPECT_NE(buffers.calls[2].outputs[0], buffers.sources[one.at()]);
}

TEST(Buffers, ScratchLivesForItsStepOnly) {
  Graph graph;
  Builder b(graph);
  graph.results = {b.op("relu", {b.op("matmul", {b.input("x", kSquare), b.input("y", kSquare)})})};
  const Buffers buffers = buffers_of(graph, Sharing::sharing, 1, Bytes(1000));
  for (const int call : {0, 1}) {
    const int scratch = buffers.calls[static_cast<size_t>(call)].workspace;
    ASSERT_GE(scratch, 0);
    expect_use(buffers, scratch, 1000, call, call);
    EXPECT_EQ(buffers.roles[static_cast<size_t>(scratch)], Role::workspace);
  }
}

TEST(Buffers, ResultsStayToTheEnd) {
  Graph graph;
  Builder b(graph);
  const ValueId x = b.input("x", kSquare);
  const ValueId loss = b.op("tanh", {x});      // 0
  const ValueId other = b.op("relu", {loss});  // 1: reads the loss last, but the caller comes after
  b.op("scale", {other}, {{"factor", 2.0}});   // 2
  graph.results = {loss};
  const Buffers buffers = buffers_of(graph);
  EXPECT_NE(buffers.calls[1].outputs[0], buffers.calls[0].outputs[0]);
  expect_use(buffers, buffers.calls[0].outputs[0], 256, 0, 2);
}

TEST(Buffers, EveryCopyOfARecomputedValueHasItsOwnLife) {
  Graph graph;
  Builder b(graph);
  const ValueId x = b.input("x", kSquare);
  const ValueId w = b.weight("w", kSquare, {});
  const ValueId y = b.op("matmul", {x, w});    // node 0
  const ValueId z = b.op("matmul", {y, w});    // node 1
  const ValueId far = b.op("matmul", {z, w});  // node 2
  graph.results = {b.op("matmul", {far, y})};  // node 3
  const Schedule schedule = {
      {{NodeId{0}}, {NodeId{1}}, {NodeId{2}}, {NodeId{0}, true}, {NodeId{3}}}};
  const Buffers buffers = assign_buffers(graph, schedule, flat_costs(graph), Sharing::sharing, 1);
  const int first = buffers.calls[0].outputs[0], second = buffers.calls[3].outputs[0];
  EXPECT_NE(first, second);
  expect_use(buffers, first, 256, 0, 1);
  expect_use(buffers, second, 256, 3, 4);
  EXPECT_EQ(buffers.calls[1].inputs[0], first);
  EXPECT_EQ(buffers.calls[4].inputs[1], second);
  expect_use(buffers, buffers.sources[x.at()], 256, 0, 3);  // the repetition reads it again
}

// begin: zero the gradient, make what every turn reads.  each: add to the gradient.  end: update.
struct Loop {
  Graph graph;
  ValueId x, w, rate, zero, table, sum, updated, last;
  enum { fill, make_table, use, add, read_table, update };
};

Loop make_loop() {
  Loop loop;
  Builder b(loop.graph);
  loop.x = b.input("x", kSquare);
  loop.w = b.weight("w", kSquare, {Init::Kind::normal, 1});
  loop.rate = b.input("rate", {{1}, DType::f32});
  b.set_phase(Phase::prologue);
  loop.zero = b.op("fill", {}, {{"shape", std::vector<int64_t>{8, 8}}, {"value", 0.0}});
  loop.table = b.op("scale", {loop.w}, {{"factor", 0.5}});
  b.set_phase(Phase::per_microbatch);
  const ValueId h = b.op("matmul", {loop.x, loop.table});
  loop.sum = b.accumulate("matmul", {h, loop.x}, {}, {loop.zero})[0];
  loop.last = b.op("relu", {loop.table});  // the last call of a turn; the next turn reads the table
  b.set_phase(Phase::epilogue);
  loop.updated =
      b.op("update", {loop.w, loop.sum, loop.rate}, {{"rule", "sgd_plain"}, {"weight_decay", 0.0}});
  loop.graph.results = {loop.last};
  verify_graph(loop.graph);
  return loop;
}

TEST(Buffers, WhatTheLoopReadsOutlivesTheLoop) {
  const Loop loop = make_loop();
  const Buffers once = buffers_of(loop.graph, Sharing::sharing, 1);
  const Buffers many = buffers_of(loop.graph, Sharing::sharing, 4);
  const auto made = [](const Buffers& b, int call) {
    return b.calls[static_cast<size_t>(call)].outputs[0];
  };
  // One turn: the table's last reader takes its bytes. Several: the next turn wants them.
  EXPECT_EQ(made(once, Loop::read_table), made(once, Loop::make_table));
  EXPECT_NE(made(many, Loop::read_table), made(many, Loop::make_table));
  expect_use(many, made(many, Loop::make_table), 256, Loop::make_table, Loop::read_table);
  // The gradient's bytes are one buffer from `prologue` to `epilogue`.
  EXPECT_EQ(made(many, Loop::add), made(many, Loop::fill));
  expect_use(many, made(many, Loop::add), 256, Loop::fill, Loop::update);
  // Data arrive again before every turn, so their bytes are free behind their last reader; what the
  // end of the step reads arrives once.
  EXPECT_EQ(many.uses[static_cast<size_t>(many.sources[loop.x.at()])].last, Loop::add);
  EXPECT_EQ(many.uses[static_cast<size_t>(many.sources[loop.rate.at()])].last, Loop::update);
  EXPECT_EQ(made(many, Loop::update), many.sources[loop.w.at()]);
}

TEST(Buffers, WhatIsCarriedLiesRightAboveTheWeights) {
  const Loop loop = make_loop();
  const Buffers many = buffers_of(loop.graph, Sharing::sharing, 4);
  const auto carried = std::count(many.carried.begin(), many.carried.end(), true);
  EXPECT_EQ(carried, 2);  // the gradient and the table
  const Buffers once = buffers_of(loop.graph, Sharing::sharing, 1);
  EXPECT_EQ(std::count(once.carried.begin(), once.carried.end(), true), 0);
  const Costs costs = flat_costs(loop.graph);
  const Plan plan =
      std::get<Plan>(make_plan({.graph = loop.graph, .costs = costs, .microbatches = 4}));
  EXPECT_EQ(plan.sources[loop.w.at()], Bytes(0));
  EXPECT_EQ(plan.calls[Loop::fill].outputs[0], Bytes(256));
  EXPECT_EQ(plan.calls[Loop::make_table].outputs[0], Bytes(512));
}

TEST(Buffers, PhaseRangesSplitASchedule) {
  const Loop loop = make_loop();
  Schedule schedule;
  for (int32_t n = 0; n < 6; ++n) schedule.calls.push_back({NodeId{n}});
  const auto range = [&](Phase phase) {
    const PhaseRange r = phase_range(loop.graph, schedule, phase);
    return std::pair(r.begin, r.end);
  };
  EXPECT_EQ(range(Phase::prologue), std::pair(0, 2));
  EXPECT_EQ(range(Phase::per_microbatch), std::pair(2, 5));
  EXPECT_EQ(range(Phase::epilogue), std::pair(5, 6));
}

TEST(Buffers, APlanOfALoopPassesTheVerifier) {
  const Loop loop = make_loop();
  const Costs costs = flat_costs(loop.graph, Bytes(100));
  for (const int microbatches : {1, 2, 4}) {
    for (const Sharing sharing : {Sharing::none, Sharing::in_place, Sharing::sharing}) {
      const PlanResult plan = make_plan(
          {.graph = loop.graph, .costs = costs, .sharing = sharing, .microbatches = microbatches});
      EXPECT_EQ(find_fault(loop.graph, costs, std::get<Plan>(plan)), std::nullopt)
          << microbatches << " microbatches";
    }
  }
}

TEST(Buffers, AScheduleThatReadsWhatIsNotMadeIsABug) {
  Graph graph;
  Builder b(graph);
  graph.results = {b.op("relu", {b.op("tanh", {b.input("x", kSquare)})})};
  const Schedule backwards = {{{NodeId{1}}, {NodeId{0}}}};
  EXPECT_THROW(assign_buffers(graph, backwards, flat_costs(graph), Sharing::sharing, 1),
               InternalError);
}

}  // namespace
}  // namespace thimble
