// The work behind one command: backends made, graphs built and priced, cost files read, recipes checked.
// The linker puts a counter in front of each of these functions (tests/CMakeLists.txt).
#include <gtest/gtest.h>

#include "backend/backend.h"
#include "base/io/file.h"
#include "cli/options.h"
#include "execute/costs.h"
#include "file_support.h"
#include "pipeline/training_graph.h"

namespace thimble {

namespace {

struct Counts {
  int backends = 0;  // made
  int graphs = 0;    // of a step, built
  int prices = 0;    // of graphs
  int reads = 0;     // of the cost file
  int checks = 0;    // of recipes
};
Counts counts;

}  // namespace

// The functions themselves, and what is called in their place.
std::unique_ptr<Backend> real_make_backend(std::string_view name, const DeviceOptions& options) asm(
    "__real_" THIMBLE_MAKE_BACKEND);
std::unique_ptr<Backend> counted_make_backend(
    std::string_view name, const DeviceOptions& options) asm("__wrap_" THIMBLE_MAKE_BACKEND);
std::unique_ptr<Backend> counted_make_backend(std::string_view name, const DeviceOptions& options) {
  ++counts.backends;
  return real_make_backend(name, options);
}

TrainingGraph real_make_graph(const Recipe& recipe,
                              const StepShape& shape) asm("__real_" THIMBLE_MAKE_GRAPH);
TrainingGraph counted_make_graph(const Recipe& recipe,
                                 const StepShape& shape) asm("__wrap_" THIMBLE_MAKE_GRAPH);
TrainingGraph counted_make_graph(const Recipe& recipe, const StepShape& shape) {
  ++counts.graphs;
  return real_make_graph(recipe, shape);
}

Costs real_gather_costs(const Graph& graph, Backend& backend,
                        const CostTable& table) asm("__real_" THIMBLE_GATHER_COSTS);
Costs counted_gather_costs(const Graph& graph, Backend& backend,
                           const CostTable& table) asm("__wrap_" THIMBLE_GATHER_COSTS);
Costs counted_gather_costs(const Graph& graph, Backend& backend, const CostTable& table) {
  ++counts.prices;
  return real_gather_costs(graph, backend, table);
}

std::string real_read_text(const std::string& path, std::string_view what,
                           Bytes most) asm("__real_" THIMBLE_READ_TEXT);
std::string counted_read_text(const std::string& path, std::string_view what,
                              Bytes most) asm("__wrap_" THIMBLE_READ_TEXT);
std::string counted_read_text(const std::string& path, std::string_view what, Bytes most) {
  counts.reads += what == "a file of costs" ? 1 : 0;
  return real_read_text(path, what, most);
}

void real_check(const Recipe& recipe) asm("__real_" THIMBLE_CHECK);
void counted_check(const Recipe& recipe) asm("__wrap_" THIMBLE_CHECK);
void counted_check(const Recipe& recipe) {
  ++counts.checks;
  real_check(recipe);
}

namespace {

// Where times are known of another machine alone, and nothing is measured.
class Work : public testing::Test {
 protected:
  Work() {
    write_costs(folder_ / "costs-cpu.json", {});
    ::setenv("THIMBLE_CACHE", folder_.path().c_str(), 1);
    ::setenv("THIMBLE_CALIBRATE", "off", 1);
  }
  ~Work() override { ::unsetenv("THIMBLE_CACHE"); }

  // Of `thimble WORDS`.
  Counts of(Command (*add)(CLI::App&), std::vector<std::string> words, int code = kOk) {
    CLI::App app;
    const Command command = add(app);
    std::ranges::reverse(words);
    app.parse(std::move(words));
    counts = {};
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    EXPECT_EQ(command.run(), code);
    testing::internal::GetCapturedStdout();
    testing::internal::GetCapturedStderr();
    const Counts all = counts;
    RecordProperty("backends", all.backends);
    RecordProperty("graphs", all.graphs);
    RecordProperty("prices", all.prices);
    RecordProperty("reads", all.reads);
    RecordProperty("checks", all.checks);
    return all;
  }
  std::string out() const { return folder_ / "run"; }

 private:
  const TemporaryFolder folder_;
};

void expect_at_most(const Counts& work, const Counts& most) {
  EXPECT_LE(work.backends, most.backends);
  EXPECT_LE(work.graphs, most.graphs);
  EXPECT_LE(work.prices, most.prices);
  EXPECT_LE(work.reads, most.reads);
  EXPECT_LE(work.checks, most.checks);
}

TEST_F(Work, OfAPlanAsTyped) {
  expect_at_most(of(add_plan, {"plan", "mlp", "--threads", "1"}),
                 {.backends = 1, .graphs = 1, .prices = 1, .reads = 1, .checks = 1});
}

// A step or a row each, on one machine; of what each technique saves, on one beside that of the plan.
TEST_F(Work, OfManyPlansOfOneRecipe) {
  const std::vector<std::string> mlp = {"mlp", "--batch", "8", "--threads", "1"};
  const auto backends = [&](Command (*add)(CLI::App&), std::vector<std::string> words) {
    words.insert(words.begin() + 1, mlp.begin(), mlp.end());
    return of(add, std::move(words)).backends;
  };
  EXPECT_EQ(backends(add_plan, {"plan", "--sweep"}), 1);
  EXPECT_EQ(backends(add_plan, {"plan", "--sweep", "--ranks", "4"}), 1);
  EXPECT_EQ(backends(add_profile, {"profile", "--steps", "0"}), 2);
}

// Training and evaluation are priced; the recipe is checked once more with what the data fix.
TEST_F(Work, OfTrainingWithinABudget) {
  expect_at_most(of(add_train, {"train", THIMBLE_RECIPES "/digits.toml", "--memory", "7MiB",
                                "--threads", "1", "--steps", "1", "--no-eval", "--out", out()}),
                 {.backends = 1, .graphs = 1, .prices = 2, .reads = 1, .checks = 2});
}

TEST_F(Work, OfALargePlanThatDoesNotFit) {
  expect_at_most(
      of(add_plan, {"plan", "gpt2-124m", "--memory", "1GiB", "--threads", "1"}, kInfeasible),
      {.backends = 1, .graphs = 76, .prices = 76, .reads = 1, .checks = 155});
}

}  // namespace
}  // namespace thimble
