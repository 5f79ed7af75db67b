#include "weights/checkpoint.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "../file_support.h"
#include "base/error.h"
#include "data/fingerprint.h"
#include "support/lost_device.h"
#include "support/runs.h"
#include "weights/safetensors.h"
#include "weights/weights_file.h"

namespace thimble {
namespace {

namespace fs = std::filesystem;

const nlohmann::json kRecipe = {{"model", "mlp"}, {"batch", 64}};

TEST(Checkpoint, ThereAndBack) {
  const TemporaryFolder folder;
  TrainingRun first(adam_run(), {.steps = 3, .evaluate = false});
  first.run();
  const std::string folder_of_it = save_checkpoint(
      folder / "out", first.program(), {.step = 3, .recipe = kRecipe, .progress = {{"loss", 0.5}}});
  EXPECT_EQ(latest_checkpoint(folder / "out"), fs::canonical(folder_of_it).string());

  TrainingRun second(adam_run(), {.steps = 1, .evaluate = false});
  ASSERT_NE(persistent_bytes(second.program()), persistent_bytes(first.program()));
  const Position position = load_checkpoint(folder_of_it, second.program(), kRecipe);
  EXPECT_EQ(position.step, 3);
  EXPECT_EQ(position.recipe, kRecipe);
  EXPECT_EQ(position.progress, (nlohmann::json{{"loss", 0.5}}));
  EXPECT_EQ(persistent_bytes(second.program()), persistent_bytes(first.program()));
  EXPECT_EQ(weights_sha256(second.program()), weights_sha256(first.program()));
}

TEST(Checkpoint, HoldsWeightsAsSafetensorsWithStateBeside) {
  const TemporaryFolder folder;
  TrainingRun run(wrn_run(), {.steps = 1, .evaluate = false});
  const std::string path = save_checkpoint(folder.path(), run.program(), {.recipe = kRecipe});
  const SafetensorsFile weights(path + "/weights.safetensors");
  const SafetensorsFile optimizer(path + "/optimizer.safetensors");
  const Graph& graph = run.program().graph();
  size_t in_weights = 0, in_optimizer = 0;
  for (const Value& value : graph.values) {
    if (value.producer.valid()) continue;
    const bool model = value.role == Role::weight || value.role == Role::statistic;
    in_weights += model;
    in_optimizer += value.role == Role::optimizer_state;
    EXPECT_EQ(weights.find(value.name) != nullptr, model) << value.name;
    EXPECT_EQ(optimizer.find(value.name) != nullptr, value.role == Role::optimizer_state);
  }
  EXPECT_EQ(weights.tensors().size(), in_weights);
  EXPECT_EQ(optimizer.tensors().size(), in_optimizer);
}

TEST(Checkpoint, OnlyTheLatestStays) {
  const TemporaryFolder folder;
  TrainingRun run(mlp_run(), {.steps = 1, .evaluate = false});
  // The same step again goes beside the one before, which is whole until `latest` has moved on.
  const std::vector<std::pair<int64_t, std::string>> saves = {{1, "step-00000001"},
                                                              {2, "step-00000002"},
                                                              {2, "step-00000002-2"},
                                                              {2, "step-00000002"},
                                                              {10, "step-00000010"}};
  for (const auto& [step, name] : saves) {
    const std::string path =
        save_checkpoint(folder.path(), run.program(), {.step = step, .recipe = kRecipe});
    EXPECT_EQ(path, folder / name);
    EXPECT_EQ(folder.entries(), 2);  // the folder and `latest`
    EXPECT_EQ(fs::read_symlink(folder / "latest"), name);
  }
}

// Of several that stay, each is of another step; what a run saved that was gone on from before goes.
TEST(Checkpoint, OfAStepSavedTwiceTheLastStays) {
  const TemporaryFolder folder;
  TrainingRun run(mlp_run(), {.steps = 1, .evaluate = false});
  const auto saved = [&](int64_t step) {
    save_checkpoint(folder.path(), run.program(), {.step = step, .recipe = kRecipe}, 3);
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder.path())) {
      if (entry.path().filename() != "latest") names.push_back(entry.path().filename().string());
    }
    std::ranges::sort(names);
    return names;
  };
  using Names = std::vector<std::string>;
  saved(1);
  EXPECT_EQ(saved(2), (Names{"step-00000001", "step-00000002"}));
  EXPECT_EQ(saved(2), (Names{"step-00000001", "step-00000002-2"}));
  EXPECT_EQ(saved(4), (Names{"step-00000001", "step-00000002-2", "step-00000004"}));
  EXPECT_EQ(saved(5), (Names{"step-00000002-2", "step-00000004", "step-00000005"}));
  EXPECT_EQ(saved(3), (Names{"step-00000002-2", "step-00000003"}));
}

TEST(Checkpoint, OtherFilesInTheFolderAreLeftAlone) {
  const TemporaryFolder folder;
  spill(folder / "step-list.txt", "mine");
  fs::create_directories(folder / "step-by-step");
  TrainingRun run(mlp_run(), {.steps = 1, .evaluate = false});
  for (const int64_t step : {1, 2}) {
    save_checkpoint(folder.path(), run.program(), {.step = step, .recipe = kRecipe});
  }
  EXPECT_EQ(slurp(folder / "step-list.txt"), "mine");
  EXPECT_TRUE(fs::exists(folder / "step-by-step"));
}

TEST(Checkpoint, LeftoversOfACrashAreNotCheckpoints) {
  const TemporaryFolder folder;
  EXPECT_EQ(latest_checkpoint(folder.path()), std::nullopt);
  EXPECT_EQ(latest_checkpoint(folder / "nowhere"), std::nullopt);
  // Cut off while writing, and cut off between the folder and the link.
  fs::create_directories(folder / ".step-00000007.partial");
  spill(folder / ".step-00000007.partial/weights.safetensors", "half of it");
  fs::create_directories(folder / "step-00000005");
  spill(folder / "step-00000005/state.json", "{}");
  spill(folder / ".latest.partial", "");
  EXPECT_EQ(latest_checkpoint(folder.path()), std::nullopt);

  TrainingRun run(mlp_run(), {.steps = 1, .evaluate = false});
  const std::string path =
      save_checkpoint(folder.path(), run.program(), {.step = 7, .recipe = kRecipe});
  EXPECT_EQ(latest_checkpoint(folder.path()), fs::canonical(path).string());
  EXPECT_EQ(folder.entries(), 2);
  EXPECT_EQ(load_checkpoint(path, run.program(), kRecipe).step, 7);
}

TEST(Checkpoint, ADeviceLostWhileSavingLeavesTheOneBefore) {
  const TemporaryFolder folder;
  TrainingRun run(adam_run(), {.steps = 1, .evaluate = false});
  const std::string good =
      save_checkpoint(folder.path(), run.program(), {.step = 4, .recipe = kRecipe});
  const std::string before = persistent_bytes(run.program());
  for (const int copies : {0, 1, 7}) {  // among the weights, and among the moments
    LostDevice device(run.planned().backend());
    device.lose_after(copies);
    const auto arena = device.allocate(run.planned().plan().arena);
    Program program(run.program().graph(), run.planned().plan(), device, *arena);
    EXPECT_TRUE(throws_saying<DeviceError>(
        [&] { save_checkpoint(folder.path(), program, {.step = 5, .recipe = kRecipe}); }, "lost"));
    EXPECT_EQ(latest_checkpoint(folder.path()), fs::canonical(good).string());
    EXPECT_EQ(folder.entries(), 2);  // it and the link
  }
  run.run();
  EXPECT_EQ(load_checkpoint(good, run.program(), kRecipe).step, 4);
  EXPECT_EQ(persistent_bytes(run.program()), before);
}

// Cut off before the old one was removed, or while it was: the next start tidies up, and touches
// nothing else.
TEST(Checkpoint, WhatAKilledSaveLeavesIsRemovedAtTheNextStart) {
  const TemporaryFolder folder;
  TrainingRun run(mlp_run(), {.steps = 1, .evaluate = false});
  const std::string latest =
      save_checkpoint(folder.path(), run.program(), {.step = 7, .recipe = kRecipe});
  for (const char* old : {"step-00000003", "step-00000007-2", ".step-00000008.partial",
                          ".step-00000008-10.partial", "step-123456789"}) {
    fs::create_directories(folder / old);
    spill(folder / old + "/state.json", "{}");
  }
  const std::vector<std::string> users = {
      "step-by-step",      "step-0000003",    "step-00000003-",        "step-00000003-2b",
      "step-00000003_2",   ".step-00000008",  "step-00000008.partial", ".partial",
      ".step-008.partial", "my-step-00000003"};
  for (const std::string& own : users) fs::create_directories(folder / own);
  spill(folder / "step-00000001", "a file of the user's");
  remove_old_checkpoints(folder.path());
  EXPECT_EQ(folder.entries(), 3 + std::ssize(users));  // the latest, the link, what is the user's
  EXPECT_EQ(load_checkpoint(latest, run.program(), kRecipe).step, 7);
  fs::remove(folder / "latest");
  remove_old_checkpoints(folder.path());
  EXPECT_TRUE(fs::exists(latest + "/state.json"));  // without `latest`, nobody knows which is whole
}

TEST(Checkpoint, OfOtherDataIsRefused) {
  const TemporaryFolder folder;
  TrainingRun run(mlp_run(), {.steps = 1, .evaluate = false});
  const nlohmann::json data = fingerprint_of(open_dataset("digits")->info());
  const std::string path =
      save_checkpoint(folder.path(), run.program(), {.step = 1, .recipe = kRecipe, .data = data});
  EXPECT_EQ(load_checkpoint(path, run.program(), kRecipe, data).data, data);
  const auto refusal = [&](const char* field, const nlohmann::json& value) {
    nlohmann::json other = data;
    other[field] = value;
    return message_of<UserError>([&] { load_checkpoint(path, run.program(), kRecipe, other); });
  };
  EXPECT_NE(refusal("train_records", 7).find("training records was 1442 and is 7 now"),
            std::string::npos)
      << refusal("train_records", 7);
  EXPECT_NE(refusal("test_sha256", "00").find("sha256 of the test records"), std::string::npos);
  EXPECT_NE(refusal("set", "mnist").find("the data set was \"digits\""), std::string::npos);
  // One of another format is refused by its number.
  nlohmann::json state = nlohmann::json::parse(slurp(path + "/state.json"));
  state["format"] = 2;
  spill(path + "/state.json", state.dump());
  EXPECT_TRUE(throws_saying<UserError>([&] { load_checkpoint(path, run.program(), kRecipe, data); },
                                       "has the format 2", "reads 3 to 3"));
}

TEST(Checkpoint, ARunThatIsAskedToStopSavesAndGoesOnToTheSameBits) {
  const TemporaryFolder folder;
  RunOptions options = {.steps = 6, .evaluate = false};
  options.rate.kind = RateSchedule::Kind::constant;
  const TrainResult whole = TrainingRun(adam_run(), options).run();
  options.out = folder / "out";
  int asked = 0;
  RunOptions first = options;
  first.stop = [&] { return ++asked == 4; };
  const TrainResult stopped = TrainingRun(adam_run(), first).run();
  EXPECT_TRUE(stopped.stopped);
  EXPECT_EQ(stopped.steps, 4);
  EXPECT_EQ(stopped.checkpoint, folder / "out/step-00000004");
  options.resume = true;
  const TrainResult rest = TrainingRun(adam_run(), options).run();
  EXPECT_EQ(rest.resumed_at, 4);
  EXPECT_FALSE(rest.stopped);
  EXPECT_EQ(rest.weights_sha256, whole.weights_sha256);
}

class DamagedCheckpoint : public testing::Test {
 protected:
  DamagedCheckpoint() : run_(adam_run(), {.steps = 1, .evaluate = false}) {
    path_ = save_checkpoint(folder_.path(), run_.program(), {.step = 4, .recipe = kRecipe});
    run_.run();  // so that what is in memory is not what is on disk
    before_ = persistent_bytes(run_.program());
  }

  template <class... Parts>
  void expect_refused(const Parts&... parts) {
    EXPECT_TRUE(throws_saying<UserError>([&] { load_checkpoint(path_, run_.program(), kRecipe); },
                                         parts...));
    EXPECT_EQ(persistent_bytes(run_.program()), before_) << "something was loaded";
  }

  TemporaryFolder folder_;
  TrainingRun run_;
  std::string path_;
  std::string before_;
};

TEST_F(DamagedCheckpoint, OneFlippedBitAnywhere) {
  for (const char* name : {"/weights.safetensors", "/optimizer.safetensors"}) {
    const std::string whole = slurp(path_ + name);
    for (const size_t at : {size_t{0}, size_t{8}, size_t{20}, whole.size() / 2, whole.size() - 1}) {
      std::string bytes = whole;
      bytes[at] = static_cast<char>(bytes[at] ^ 1);
      spill(path_ + name, bytes);
      expect_refused("damaged", name + 1);
    }
    spill(path_ + name, whole);
  }
  load_checkpoint(path_, run_.program(), kRecipe);
  EXPECT_NE(persistent_bytes(run_.program()), before_);  // whole again, it loads
}

TEST_F(DamagedCheckpoint, CutOffOrMissingFiles) {
  for (const char* name : {"/weights.safetensors", "/optimizer.safetensors", "/state.json"}) {
    const std::string whole = slurp(path_ + name);
    for (const size_t size : {size_t{0}, size_t{7}, whole.size() / 2, whole.size() - 3}) {
      spill(path_ + name, whole.substr(0, size));
      expect_refused(name + 1);
    }
    fs::remove(path_ + name);
    expect_refused(name + 1);
    spill(path_ + name, whole);
  }
}

TEST_F(DamagedCheckpoint, StateThatIsNoState) {
  const nlohmann::json good = nlohmann::json::parse(slurp(path_ + "/state.json"));
  for (const char* key : {"format", "step", "recipe", "sha256"}) {
    nlohmann::json other = good;
    other.erase(key);
    spill(path_ + "/state.json", other.dump());
    expect_refused("state.json");
    other[key] = "text";
    spill(path_ + "/state.json", other.dump());
    expect_refused("state.json");
  }
  for (const char* text : {"[]", "null", "{\"format\":2}", "\xff\xfe"}) {
    spill(path_ + "/state.json", text);
    expect_refused("state.json");
  }
  nlohmann::json hashes = good;
  hashes["sha256"]["weights.safetensors"] = 7;
  spill(path_ + "/state.json", hashes.dump());
  expect_refused();
  nlohmann::json negative = good;
  negative["step"] = -3;
  spill(path_ + "/state.json", negative.dump());
  expect_refused("state.json");
}

TEST_F(DamagedCheckpoint, StateNestedBeyondAnyStack) {
  for (const char* open : {"[", "{\"a\":"}) {
    std::string deep;
    for (int i = 0; i < 100'000; ++i) deep += open;
    spill(path_ + "/state.json", "{\"format\":" + deep);
    expect_refused("state.json", "100 deep");
  }
}

TEST_F(DamagedCheckpoint, OfAnotherRecipe) {
  nlohmann::json other = kRecipe;
  other["batch"] = 32;
  EXPECT_TRUE(throws_saying<UserError>([&] { load_checkpoint(path_, run_.program(), other); },
                                       "batch = 64", "32", "--out"));
  other = kRecipe;
  other["seed"] = 1;
  EXPECT_TRUE(throws_saying<UserError>([&] { load_checkpoint(path_, run_.program(), other); },
                                       "seed", "(nothing)"));
  EXPECT_EQ(persistent_bytes(run_.program()), before_);
}

TEST(Checkpoint, OfAnotherModelIsRefusedEvenUnderTheSameRecipe) {
  const TemporaryFolder folder;
  TrainingRun wrn(wrn_run(), {.steps = 1, .evaluate = false});
  TrainingRun mlp(mlp_run(), {.steps = 1, .evaluate = false});
  RunSetup wide_run = mlp_run();
  wide_run.model.name = "mlp:hidden=48";
  TrainingRun wide(wide_run, {.steps = 1, .evaluate = false});
  const std::string path = save_checkpoint(folder.path(), mlp.program(), {.recipe = kRecipe});
  for (TrainingRun* other : {&wrn, &wide}) {
    const std::string before = persistent_bytes(other->program());
    EXPECT_TRUE(throws_saying<UserError>([&] { load_checkpoint(path, other->program(), kRecipe); },
                                         "another model"));
    EXPECT_TRUE(throws_saying<UserError>(
        [&] { load_weights(path + "/weights.safetensors", other->program()); }, "another model"));
    EXPECT_EQ(persistent_bytes(other->program()), before);
  }
}

TEST(Checkpoint, WeightsAloneCanBeExportedAndLoaded) {
  const TemporaryFolder folder;
  TrainingRun first(wrn_run(), {.steps = 2, .evaluate = false});
  first.run();
  save_weights(folder / "w.safetensors", first.program());
  TrainingRun second(wrn_run(), {.steps = 1, .evaluate = false});
  load_weights(folder / "w.safetensors", second.program());
  EXPECT_EQ(weights_sha256(second.program()), weights_sha256(first.program()));
  // Statistics may be missing, weights may not.
  const Graph& graph = first.program().graph();
  std::vector<TensorToWrite> tensors;
  for (size_t v = 0; v < graph.values.size(); ++v) {
    const Value& value = graph.values[v];
    if (value.producer.valid() || value.role != Role::weight) continue;
    tensors.push_back({value.name, value.type, first.program().bytes_of(make_id<ValueId>(v)), {}});
  }
  write_safetensors(folder / "weights_only", tensors);
  TrainingRun third(wrn_run(), {.steps = 1, .evaluate = false});
  load_weights(folder / "weights_only", third.program());
  EXPECT_NE(weights_sha256(third.program()), weights_sha256(first.program()));  // statistics
  tensors.pop_back();
  write_safetensors(folder / "one_short", tensors);
  EXPECT_THROW(load_weights(folder / "one_short", third.program()), UserError);
}

TEST(Checkpoint, TheShaSeesEveryWeightAndStatistic) {
  TrainingRun run(wrn_run(), {.steps = 1, .evaluate = false});
  Program& program = run.program();
  const std::string before = weights_sha256(program);
  EXPECT_EQ(before.size(), 64u);
  const Graph& graph = program.graph();
  for (size_t v = 0; v < graph.values.size(); ++v) {
    const Value& value = graph.values[v];
    if (value.producer.valid() || !is_persistent(value.role)) continue;
    std::byte& last = program.bytes_of(make_id<ValueId>(v)).back();
    last ^= std::byte{1};
    const bool counts = value.role == Role::weight || value.role == Role::statistic;
    EXPECT_EQ(weights_sha256(program) != before, counts) << value.name;
    last ^= std::byte{1};
  }
  EXPECT_EQ(weights_sha256(program), before);
}

// Killed at step k and resumed, against never interrupted.
class Resume : public testing::TestWithParam<std::pair<std::string, RunSetup>> {};

TEST_P(Resume, ContinuesToTheSameBits) {
  const RunSetup& run = GetParam().second;
  const int64_t steps = 12;
  TrainingRun whole(run, {.steps = steps, .evaluate_every = 5});
  const TrainResult expected = whole.run();
  for (const int64_t k : {1, 5, 11, 12}) {
    SCOPED_TRACE(k);
    const TemporaryFolder folder;
    RunOptions options = {
        .steps = steps, .save_every = k, .evaluate_every = 3, .out = folder / "out"};
    options.rate.kind = RateSchedule::Kind::constant;
    {
      // Stops in the middle of things, as if killed: what `latest` holds is step k's.
      RunOptions first = options;
      first.on_microbatch = [&](MicrobatchId which, TrainingStep::Part&) {
        if (which.step == k) throw std::runtime_error("killed");
      };
      TrainingRun killed(run, first);
      if (k < steps) {
        EXPECT_THROW(killed.run(), std::runtime_error);
      } else {
        killed.run();
      }
    }
    options.resume = true;
    TrainingRun resumed(run, options);
    const TrainResult result = resumed.run();
    EXPECT_EQ(result.resumed_at, k);
    EXPECT_EQ(result.steps, steps);
    EXPECT_EQ(result.weights_sha256, expected.weights_sha256);
    EXPECT_EQ(persistent_bytes(resumed.program()), persistent_bytes(whole.program()));
    EXPECT_EQ(result.train.loss, expected.train.loss);
    EXPECT_EQ(result.train["accuracy"], expected.train["accuracy"]);
    EXPECT_EQ(result.test.loss, expected.test.loss);
    EXPECT_EQ(result.test["accuracy"], expected.test["accuracy"]);
    EXPECT_EQ(result.losses,
              std::vector<double>(expected.losses.begin() + k, expected.losses.end()));
  }
}

INSTANTIATE_TEST_SUITE_P(Zoo, Resume,
                         testing::Values(std::pair{"mlp_dropout", mlp_run()},
                                         std::pair{"wrn_augment", wrn_run()},
                                         std::pair{"lstm", lstm_run()},
                                         std::pair{"adam", adam_run()}),
                         [](const auto& test) { return test.param.first; });

TEST(ResumeErrors, SayWhatDiffers) {
  const TemporaryFolder folder;
  const RunOptions options = {.steps = 2, .evaluate = false, .out = folder / "out"};
  EXPECT_TRUE(throws_saying<UserError>(
      [&] {
        RunOptions resumed = options;
        resumed.resume = true;
        TrainingRun(mlp_run(), resumed);
      },
      "no checkpoint"));
  TrainingRun(mlp_run(), options).run();
  RunOptions resumed = options;
  resumed.resume = true;
  const auto refusal = [&](const RunSetup& run, const RunOptions& with) {
    return message_of<UserError>([&] { TrainingRun(run, with); });
  };
  RunSetup other = mlp_run();
  other.model.batch = 32;
  EXPECT_NE(refusal(other, resumed).find("batch"), std::string::npos);
  other = mlp_run();
  other.optimizer = "sgd";
  EXPECT_NE(refusal(other, resumed).find("optimizer"), std::string::npos);
  other = mlp_run();
  other.seed = 6;
  EXPECT_NE(refusal(other, resumed).find("seed"), std::string::npos);
  other = mlp_run();
  other.augment = true;
  EXPECT_NE(refusal(other, resumed).find("augment"), std::string::npos);
  EXPECT_NE(refusal(wrn_run(), resumed).find("model"), std::string::npos);
  RunOptions shorter = resumed;
  shorter.steps = 1;
  EXPECT_NE(refusal(mlp_run(), shorter).find("beyond"), std::string::npos);
  EXPECT_EQ(refusal(mlp_run(), resumed), "");
}

}  // namespace
}  // namespace thimble
