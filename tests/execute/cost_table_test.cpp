// Measured kernel times: names of kernels, the file, and how measured and modelled times mix.
#include "execute/cost_table.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "backend/tunable_kernel.h"
#include "base/error.h"
#include "execute/calibrate.h"
#include "execute/costs.h"
#include "file_support.h"
#include "graph/builder.h"
#include "pipeline/pipeline.h"

namespace thimble {
namespace {

Signature relu_of(const Shape& shape) {
  return {find_op("relu"), {}, {{shape, DType::f32}}, {{shape, DType::f32}}, 0};
}

Graph small_step(std::string_view optimizer = "nesterov") {
  ModelOptions options;
  options.name = "mlp:hidden=16";
  options.image = {8, 8, 1};
  options.classes = 10;
  options.batch = 4;
  return make_training_graph(options, parse_optimizer(optimizer)).model.graph;
}

// Every kernel of the graph, at `factor` times its modelled time.
CostTable scaled_table(const Graph& graph, Backend& backend, double factor) {
  CostTable table;
  for (const KernelUse& use : kernels_of(graph, backend)) {
    table[use.key] = {factor * use.modelled, use.modelled, "2026-11-15"};
  }
  return table;
}

double sum_of(const Costs& costs) {
  double sum = 0;
  for (const NodeCost& node : costs.nodes) sum += node.seconds;
  return sum;
}

TEST(KernelKey, NamesWhatDecidesTheTime) {
  const auto backend = make_backend("cpu", 1);
  const auto key = [&](const Signature& s) { return kernel_key(s, backend->kernel(s)); };
  const Signature plain = relu_of({4, 16});
  EXPECT_EQ(key(plain), "relu(f32[4,16]) -> f32[4,16] by own");
  EXPECT_EQ(op_of_key(key(plain)), "relu");
  Signature adds = plain;
  adds.accumulate = 1;
  EXPECT_EQ(key(adds), "relu(f32[4,16]) -> f32[4,16] added into 0 by own");
  EXPECT_NE(key(relu_of({16, 4})), key(plain));

  const TensorType row = {{16}, DType::f32};
  const auto dropout = [&](double p, int64_t stream) {
    const TensorType random = {{4}, DType::i64};
    return key({find_op("dropout"), {{"p", p}, {"stream", stream}}, {row, random}, {row}, 0});
  };
  EXPECT_EQ(dropout(0.1, 1), dropout(0.5, 2)) << "numbers alone do not change the time";
}

TEST(CostFileTest, ComesBackAsItWasWritten) {
  const TemporaryFolder folder;
  CostFile file;
  file["one, 1 thread"]["relu(f32[4]) -> f32[4] by own"] = {1.0 / 3, 1e-9, "2026-01-31"};
  file["one, 1 thread"]["add(f32[4] f32[4]) -> f32[4] by own"] = {2e-6, 3e-6, "2026-02-01"};
  file["another \"cpu\", 64 threads"]["tanh(f32[4]) -> f32[4] by own"] = {5, 6, "1999-12-31"};
  write_costs(folder / "costs.json", file);
  EXPECT_EQ(read_costs(folder / "costs.json"), file);
  EXPECT_EQ(folder.entries(), 1);
}

TEST(CostFileTest, AnythingElseIsRefused) {
  const TemporaryFolder folder;
  const std::string path = folder / "costs.json";
  EXPECT_NE(message_of<UserError>([&] { read_costs(path); }).find(path), std::string::npos);
  const auto with = [](std::string_view entry) {
    return fmt::format(R"({{"format":"thimble-costs-1","machines":{{"m":{{"k":{}}}}}}})", entry);
  };
  const std::string sound = with(R"({"seconds":1,"modelled":2,"date":"2026-11-15"})");
  const std::string files[] = {
      "",
      "not json",
      "[]",
      "{}",
      "7",
      R"({"format":7,"machines":{}})",
      R"({"format":"thimble-costs-0","machines":{}})",
      R"({"format":"thimble-costs-1"})",
      R"({"format":"thimble-costs-1","machines":7})",
      R"({"format":"thimble-costs-1","machines":{"m":[]}})",
      with("1"),
      with(R"({"seconds":1,"modelled":2})"),
      with(R"({"seconds":"1","modelled":2,"date":"2026-11-15"})"),
      with(R"({"seconds":0,"modelled":2,"date":"2026-11-15"})"),
      with(R"({"seconds":-1,"modelled":2,"date":"2026-11-15"})"),
      with(R"({"seconds":1e999,"modelled":2,"date":"2026-11-15"})"),
      with(R"({"seconds":1,"modelled":null,"date":"2026-11-15"})"),
      with(R"({"seconds":1,"modelled":2,"date":"yesterday"})"),
      with(R"({"seconds":1,"modelled":2,"date":"2026-11-15 "})"),
      sound.substr(0, sound.size() - 2),
  };
  for (const std::string& content : files) {
    spill(path, content);
    const std::string message = message_of<UserError>([&] { read_costs(path); });
    EXPECT_NE(message.find(path), std::string::npos) << content;
    EXPECT_NE(message.find("thimble calibrate"), std::string::npos) << content;
  }
  spill(path, sound);
  EXPECT_EQ(read_costs(path).at("m").at("k"), (KernelTime{1, 2, "2026-11-15"}));
}

TEST(GatherCosts, WithoutMeasurementsItIsTheModel) {
  const auto backend = make_backend("cpu", 1);
  const Graph graph = small_step();
  const Costs costs = gather_costs(graph, *backend);
  EXPECT_EQ(costs.source, "cpu, modelled");
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    EXPECT_EQ(costs.nodes[n].seconds, backend->seconds(signature_of(graph, make_id<NodeId>(n))));
  }
}

TEST(GatherCosts, MeasuredTimesAreTakenAsTheyAre) {
  const auto backend = make_backend("cpu", 1);
  const Graph graph = small_step();
  const Costs modelled = gather_costs(graph, *backend);
  const Costs measured = gather_costs(graph, *backend, scaled_table(graph, *backend, 3));
  EXPECT_EQ(measured.source, "cpu, measured 2026-11-15");
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    EXPECT_EQ(measured.nodes[n].seconds, 3 * modelled.nodes[n].seconds);
    EXPECT_EQ(measured.nodes[n].workspace, modelled.nodes[n].workspace);
    EXPECT_EQ(measured.nodes[n].flops, modelled.nodes[n].flops);
  }
}

// A kernel that was not measured is scaled like its op, or like everything: a machine that is three times
// slower than its model comes out three times slower, however few of its kernels were timed.
TEST(GatherCosts, TheRestIsScaledToBeComparable) {
  const auto backend = make_backend("cpu", 1);
  const Graph graph = small_step();
  const double modelled = sum_of(gather_costs(graph, *backend));
  CostTable table = scaled_table(graph, *backend, 3);
  const size_t all = table.size();
  while (!table.empty()) {
    table.erase(table.begin());
    const Costs costs = gather_costs(graph, *backend, table);
    EXPECT_NEAR(sum_of(costs) / modelled, table.empty() ? 1 : 3, 1e-12);
    EXPECT_EQ(costs.source, table.empty() ? "cpu, modelled"
                                          : fmt::format("cpu, {} of {} kernels measured 2026-11-15",
                                                        table.size(), all));
  }
}

TEST(GatherCosts, AnOpIsScaledByItsOwnKernelsFirst) {
  const auto backend = make_backend("cpu", 1);
  Graph graph;
  Builder builder(graph);
  const ValueId x = builder.input("x", {{4, 16}, DType::f32});
  builder.op("tanh", {builder.op("relu", {x})});
  const auto modelled = [&](size_t n) {
    return backend->seconds(signature_of(graph, make_id<NodeId>(n)));
  };
  const CostTable table = {{"relu(f32[8]) -> f32[8] by own", {2, 1, "2026-11-14"}},
                           {"matmul(f32[8]) -> f32[8] by own", {6, 1, "2026-11-15"}}};
  const Costs costs = gather_costs(graph, *backend, table);
  EXPECT_DOUBLE_EQ(costs.nodes[0].seconds, 2 * modelled(0));
  EXPECT_DOUBLE_EQ(costs.nodes[1].seconds, 4 * modelled(1));
  EXPECT_EQ(costs.source, "cpu, modelled, scaled");
}

TEST(GatherCosts, TheOldestMeasurementInUseIsNamed) {
  const auto backend = make_backend("cpu", 1);
  const Graph graph = small_step();
  CostTable table = scaled_table(graph, *backend, 1);
  table.begin()->second.date = "2025-06-01";
  table["another(f32[1]) -> f32[1] by own"] = {1, 1, "1999-01-01"};
  EXPECT_EQ(gather_costs(graph, *backend, table).source, "cpu, measured 2025-06-01");
}

TEST(GatherCosts, ADeviceThatRunsNothingIsModelled) {
  const auto backend = make_backend("null", 0);
  const Graph graph = small_step();
  const Costs costs = gather_costs(graph, *backend, scaled_table(graph, *backend, 3));
  EXPECT_EQ(costs.source, "null, modelled");
  EXPECT_EQ(sum_of(costs), sum_of(gather_costs(graph, *backend)));
}

// By a machine with that many threads, opened now.
Costs priced(const Recipe& recipe, const Graph& graph, int threads) {
  return Machine(make_backend("cpu", threads), recipe.costs).price(recipe, graph);
}

TEST(CostsOfARecipe, TimesOfOtherMachinesAreNotUsed) {
  const TemporaryFolder folder;
  const Graph graph = small_step();
  Recipe recipe;
  recipe.costs = folder / "costs.json";
  const auto one = make_backend("cpu", 1);
  CostFile file;
  file["Another(R) CPU, 1 thread"] = scaled_table(graph, *one, 5);
  write_costs(recipe.costs, file);
  EXPECT_EQ(priced(recipe, graph, 1).source, "cpu, modelled");
  file[one->machine()] = scaled_table(graph, *one, 3);
  write_costs(recipe.costs, file);
  EXPECT_EQ(priced(recipe, graph, 1).source, "cpu, measured 2026-11-15");
  EXPECT_EQ(priced(recipe, graph, 2).source, "cpu, modelled");
}

// Where the recipe's step was timed as a whole, all its kernels' times are scaled: those of any plan,
// and of every graph that an automatic codec compares.
TEST(CostsOfARecipe, AWholeStepScalesItsKernels) {
  const TemporaryFolder folder;
  const Graph graph = small_step();
  const auto backend = make_backend("cpu", 1);
  Recipe recipe;
  recipe.model = {.name = "mlp", .batch = 32};
  recipe.costs = folder / "costs.json";
  CostFile file;
  CostTable& table = file[backend->machine()];
  table = scaled_table(graph, *backend, 3);
  write_costs(recipe.costs, file);
  const Costs alone = priced(recipe, graph, 1);
  EXPECT_EQ(alone.share, 1);

  table[whole_step_key(recipe, *backend)] = {0.3, 0.5, "2026-11-15"};
  write_costs(recipe.costs, file);
  const Costs scaled = priced(recipe, graph, 1);
  EXPECT_DOUBLE_EQ(scaled.share, 0.6);
  EXPECT_DOUBLE_EQ(sum_of(scaled), 0.6 * sum_of(alone));
  EXPECT_EQ(scaled.source, alone.source);
  const auto share_with = [&](const auto& change) {
    Recipe other = recipe;
    change(other);
    return priced(other, graph, 1).share;
  };
  EXPECT_EQ(share_with([](Recipe& r) { r.memory = Bytes(1000); }), scaled.share);
  EXPECT_EQ(share_with([](Recipe& r) { r.codec = parse_codec_spec("auto"); }), scaled.share);
  EXPECT_EQ(share_with([](Recipe& r) { r.codec = parse_codec_spec("int8"); }), 1);
  EXPECT_EQ(share_with([](Recipe& r) { r.model.batch = 16; }), 1);
  EXPECT_EQ(share_with([](Recipe& r) { r.microbatch = 16; }), 1);
  EXPECT_EQ(share_with([](Recipe& r) { r.model.storage = DType::f16; }), 1);
  EXPECT_EQ(share_with([](Recipe& r) { r.optimizer = parse_optimizer("adam"); }), 1);
  EXPECT_EQ(share_with([](Recipe& r) { r.optimizer.fold = true; }), 1);
  EXPECT_EQ(share_with([](Recipe& r) { r.sparsity.density = 0.5; }), 1);

  // Steps that nobody timed as a whole may be scaled like one that was.
  Recipe other = recipe;
  other.model.batch = 16;
  Machine machine(make_backend("cpu", 1), recipe.costs);
  machine.scale_untimed_steps(0.7);
  EXPECT_EQ(machine.price(other, graph).share, 0.7);
  EXPECT_DOUBLE_EQ(machine.price(recipe, graph).share, 0.6);
}

TEST(Calibrate, EveryKernelGetsATime) {
  const auto backend = make_backend("cpu", 1);
  const Graph graph = small_step("adam");
  const std::vector<KernelUse> kernels = kernels_of(graph, *backend);
  int nodes = 0;
  for (const KernelUse& use : kernels) nodes += use.nodes;
  EXPECT_EQ(nodes, std::ranges::count_if(graph.nodes, [](const Node& n) { return !n.op->view; }));
  int calls = 0;
  const CostTable table = calibrate(
      kernels, *backend,
      {.seconds = 1e6, .rounds = 2, .date = "2026-11-15", .progress = [&](double done, int count) {
         ++calls;
         EXPECT_GT(done, 0);
         EXPECT_LE(done, 1);
         EXPECT_LE(count, static_cast<int>(kernels.size()));
       }});
  EXPECT_EQ(calls, 2 * static_cast<int>(kernels.size()));
  ASSERT_EQ(table.size(), kernels.size());
  for (const auto& [key, time] : table) {
    EXPECT_GT(time.seconds, 0) << key;
    EXPECT_EQ(time.date, "2026-11-15");
  }
  EXPECT_EQ(gather_costs(graph, *backend, table).source, "cpu, measured 2026-11-15");
}

TEST(Calibrate, WithoutTimeNothingIsMeasured) {
  const auto backend = make_backend("cpu", 1);
  const auto kernels = kernels_of(small_step(), *backend);
  EXPECT_TRUE(calibrate(kernels, *backend, {.seconds = 0, .date = "2026-11-15"}).empty());
  EXPECT_TRUE(calibrate({}, *backend, {.date = "2026-11-15"}).empty());
}

// Three ways to do the same.
class ThreeWays final : public TunableKernel {
 public:
  ThreeWays() { use(0); }
  int variants() const override { return 3; }
  int used() const override { return used_; }
  void use(int variant) override {
    used_ = variant;
    name = fmt::format("way {}", variant);
    workspace = Bytes(1000 * variant);
  }
  void run(const KernelArgs&) override {}

 private:
  int used_ = 0;
};

TEST(Variants, TheFastestThatWasMeasuredIsUsed) {
  ThreeWays kernel;
  const Signature signature = relu_of({4, 16});
  CostTable table;
  const auto measure = [&](int variant, double seconds) {
    kernel.use(variant);
    table[kernel_key(signature, kernel)] = {seconds, 1e-6, "2026-11-15"};
  };
  measure(1, 3e-6);
  measure(2, 2e-6);
  kernel.use(0);
  const KernelTime* time = use_fastest(signature, kernel, table);
  ASSERT_NE(time, nullptr);
  EXPECT_EQ(time->seconds, 2e-6);
  EXPECT_EQ(kernel.used(), 2);
  EXPECT_EQ(kernel.workspace, Bytes(2000));
}

// A second plan, made without measurements, must not change what the first was made for.
TEST(Variants, StayAsTheyAreWithoutMeasurements) {
  ThreeWays kernel;
  kernel.use(1);
  EXPECT_EQ(use_fastest(relu_of({4, 16}), kernel, {}), nullptr);
  EXPECT_EQ(kernel.used(), 1);
  EXPECT_EQ(kernel.name, "way 1");
}

// Slow variants say nothing about kernels that were not measured.
TEST(Variants, OnlyTheFastestScalesTheModel) {
  const auto backend = make_backend("cpu", 1);
  const Graph graph = small_step();
  CostTable table = scaled_table(graph, *backend, 2);
  const Costs once = gather_costs(small_step("adam"), *backend, table);
  CostTable slower = table;
  for (const auto& [key, time] : table) {
    slower[std::string(task_of_key(key)) + " by something slow"] = {100 * time.seconds,
                                                                    time.modelled, time.date};
  }
  EXPECT_DOUBLE_EQ(sum_of(gather_costs(small_step("adam"), *backend, slower)), sum_of(once));
}

}  // namespace
}  // namespace thimble
