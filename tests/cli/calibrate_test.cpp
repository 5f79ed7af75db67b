// thimble calibrate, and who uses what it measured.
#include "support/run_thimble.h"

namespace thimble {
namespace {

using Words = std::vector<std::string>;

const Words kModel = {"mlp",     "--image", "8,8,1",     "--hidden", "16",
                      "--batch", "4",       "--threads", "1"};

class CalibrateCommand : public testing::Test {
 protected:
  Outcome run(const Words& words) {
    return thimble_says(words, {.folder = folder_.path(), .cache = cache_});
  }
  nlohmann::json json(const Words& words) {
    const Outcome outcome = run(words + Words{"--json"});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return outcome.code == 0 ? outcome.json() : nlohmann::json::object();
  }
  std::string source(const Words& more = {}) {
    return json(Words{"plan"} + kModel + more).value("costs", "");
  }

  TemporaryFolder folder_;
  const std::string cache_ = folder_ / "caches/deep";
  const std::string usual_ = cache_ + "/costs-cpu.json";
};

TEST_F(CalibrateCommand, PlansUseWhatItMeasured) {
  EXPECT_EQ(source(), "cpu, modelled");
  const nlohmann::json result = json(Words{"calibrate"} + kModel);
  EXPECT_EQ(result["file"], usual_);
  EXPECT_GT(result["kernels"], 5);
  EXPECT_EQ(result["measured_kernels"], result["kernels"]);
  EXPECT_GT(result["measured_ms"], 0);
  EXPECT_GT(result["modelled_ms"], 0);
  int64_t kernels = 0;
  for (const auto& [name, op] : result["ops"].items()) kernels += op["kernels"].get<int64_t>();
  EXPECT_EQ(kernels, result["kernels"]);

  EXPECT_TRUE(source().starts_with("cpu, measured 20")) << source();
  EXPECT_TRUE(source({"--costs", usual_}).starts_with("cpu, measured 20"));
  EXPECT_EQ(source({"--costs", "modelled"}), "cpu, modelled");
  EXPECT_EQ(source({"--device", "null"}), "null, modelled");
  EXPECT_EQ(source({"--threads", "3"}), "cpu, modelled");
  EXPECT_NE(source({"--batch", "5"}).find(" of "), std::string::npos);  // updates are the same
  // The prediction is the sum of what was measured.
  const nlohmann::json plan = json(Words{"plan"} + kModel);
  EXPECT_NEAR(plan["predicted_step_ms"], result["measured_ms"].get<double>(), 1e-6);

  const Outcome text = run(Words{"plan"} + kModel);
  EXPECT_NE(text.out.find("(cpu, measured 20"), std::string::npos) << text.out;
  const Words train = {"train", "mlp", "--steps", "2", "--no-eval", "--out", "run"};
  EXPECT_NE(json(train + Words{"--hidden", "16", "--threads", "1"})["costs"], "cpu, modelled");
}

TEST_F(CalibrateCommand, AddsToWhatIsThere) {
  const std::string file = folder_ / "own.json";
  const int64_t first = json(Words{"calibrate", "--costs", file} + kModel)["kernels"];
  const Words other = {"calibrate", "lstm", "--length", "2", "--hidden", "4", "--costs", file};
  json(other + Words{"--threads", "2"});
  json(other + Words{"--threads", "1"});
  const nlohmann::json costs = nlohmann::json::parse(slurp(file));
  size_t most = 0;
  for (const auto& [machine, kernels] : costs["machines"].items()) {
    most = std::max(most, kernels.size());
  }
  EXPECT_GT(most, static_cast<size_t>(first));
  EXPECT_TRUE(source({"--costs", file}).starts_with("cpu, measured 20"));
  EXPECT_FALSE(std::filesystem::exists(usual_));
}

TEST_F(CalibrateCommand, SeveralModelsAtOnce) {
  const nlohmann::json result =
      json({"calibrate", "mlp", "wrn-10-1", "--image", "8,8,1", "--batch", "2", "--threads", "1"});
  EXPECT_TRUE(result["ops"].contains("conv2d"));
  EXPECT_TRUE(result["ops"].contains("matmul"));
}

TEST_F(CalibrateCommand, PrintsATable) {
  const Outcome outcome = run(Words{"calibrate"} + kModel);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  for (const char* part :
       {"kernels measured in", "measured ms", "modelled ms", "matmul", usual_.c_str()}) {
    EXPECT_NE(outcome.out.find(part), std::string::npos) << outcome.out;
  }
}

TEST_F(CalibrateCommand, Mistakes) {
  expect_mistake(run({"calibrate"}), "model");
  expect_mistake(run({"calibrate", "perceptron"}), "perceptron");
  expect_mistake(run({"calibrate", "mlp", "--seconds", "0"}), "--seconds");
  expect_mistake(run({"calibrate", "mlp", "--seconds", "-1"}), "--seconds");
  expect_mistake(run({"calibrate", "mlp", "--planner", "optimal"}), "--planner");
  expect_mistake(run({"calibrate", "mlp", "--device", "null"}), "null", "cpu");
  expect_mistake(run({"calibrate", "mlp", "--costs", "modelled"}), "--costs");
  expect_mistake(run({"plan", "mlp", "--costs", "none.json"}), "none.json");
  EXPECT_EQ(folder_.entries(), 0);
}

TEST_F(CalibrateCommand, DamagedFilesAreRefusedAndLeftAlone) {
  std::filesystem::create_directories(cache_);
  spill(usual_, "{\"format\": \"thimb");
  for (const char* command : {"plan", "train", "profile", "calibrate"}) {
    expect_mistake(run({command, "mlp"}), usual_, "delete the file");
  }
  EXPECT_EQ(slurp(usual_), "{\"format\": \"thimb");
  EXPECT_EQ(source({"--costs", "modelled"}), "cpu, modelled");
}

}  // namespace
}  // namespace thimble
