// An LSTM whose nodes are runs of time steps is the one whose nodes are time steps: the same
// weights under the same names, the same numbers to rounding.
#include <gtest/gtest.h>

#include <algorithm>

#include "../file_support.h"
#include "support/runs.h"
#include "weights/checkpoint.h"

namespace thimble {
namespace {

RunSetup cells() {
  RunSetup run = lstm_run();
  run.model.name += ",layers=2,length=7";
  run.rate = 0.02;  // does not amplify rounding
  return run;
}
RunSetup at_once(int64_t steps) {
  RunSetup run = cells();
  run.model.name += fmt::format(",steps-at-once={}", steps);
  return run;
}

int64_t count(const Graph& graph, std::string_view op) {
  return std::ranges::count_if(graph.nodes, [&](const Node& node) { return node.op->name == op; });
}

TEST(LstmRuns, TheLastIsAsShortAsItTakes) {
  for (const auto& [steps, runs] : {std::pair<int64_t, int64_t>{2, 4}, {3, 3}, {7, 1}, {100, 1}}) {
    const TrainingGraph training =
        make_training_graph(at_once(steps).model, parse_optimizer("sgd"));
    EXPECT_EQ(count(training.model.graph, "lstm_steps"), 2 * runs);
    EXPECT_EQ(count(training.model.graph, "lstm_steps_backward"), 2 * runs);
    EXPECT_EQ(count(training.model.graph, "slice"), runs);
    EXPECT_EQ(count(training.model.graph, "lstm_cell"), 0);
  }
  for (const RunSetup& run : {cells(), at_once(1)}) {
    const TrainingGraph training = make_training_graph(run.model, parse_optimizer("sgd"));
    EXPECT_EQ(count(training.model.graph, "lstm_cell"), 14);
    EXPECT_EQ(count(training.model.graph, "lstm_steps"), 0);
  }
}

// Nothing arrives at the states of the last layer but the last of all: it is given no zeros as
// large as they are.
TEST(LstmRuns, TheLastLayerIsGivenNoZeros) {
  const Graph graph = make_training_graph(at_once(3).model, parse_optimizer("sgd")).model.graph;
  const Shape states = {3, cells().model.batch, 16};
  for (const Value& value : graph.values) {
    EXPECT_TRUE(value.role != Role::constant || value.type.shape != states) << value.name;
  }
}

TEST(LstmRuns, TrainAsTheCellsDo) {
  const TrainResult expected = TrainingRun(cells(), {.steps = 12}).run();
  for (const int64_t steps : {2, 3, 7}) {
    for (const int64_t microbatch : {0, 6}) {  // 16 rows: the last microbatch is smaller
      RunSetup run = at_once(steps);
      run.microbatch = microbatch;
      const TrainResult result = TrainingRun(run, {.steps = 12}).run();
      for (size_t step = 0; step < 12; ++step) {
        EXPECT_NEAR(result.losses[step], expected.losses[step], 1e-5 * expected.losses[step]);
      }
      EXPECT_NEAR(result.test.loss, expected.test.loss, 1e-5 * expected.test.loss);
    }
  }
}

TEST(LstmRuns, CheckpointsGoFromOneFormToTheOther) {
  const TemporaryFolder folder;
  const auto run_to = [&](const RunSetup& run, int64_t steps, bool resume) {
    return TrainingRun(run, {.steps = steps,
                             .save_every = 4,
                             .evaluate = false,
                             .out = folder / "out",
                             .resume = resume})
        .run();
  };
  const TrainResult whole = TrainingRun(cells(), {.steps = 8, .evaluate = false}).run();
  run_to(at_once(3), 4, false);
  const TrainResult resumed = run_to(cells(), 8, true);
  EXPECT_EQ(resumed.resumed_at, 4);
  for (size_t step = 0; step < 4; ++step) {
    EXPECT_NEAR(resumed.losses[step], whole.losses[4 + step], 1e-5 * whole.losses[4 + step]);
  }
}

}  // namespace
}  // namespace thimble
