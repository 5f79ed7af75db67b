// The surroundings of the program: where it prints, who stops it, who else uses its folder, its disk.
#include "checkpoint_entries.h"
#include "support/run_thimble.h"

namespace thimble {
namespace {

using Words = std::vector<std::string>;

class AroundTheProcess : public testing::Test {
 protected:
  Words train(const std::string& out, const Words& more = {}) const {
    return Words{"train",      "mlp",      "--threads", "1",          "--no-eval",
                 "--schedule", "constant", "--out",     folder_ / out} +
           more;
  }
  // Waits for a checkpoint, so that training is surely under way.
  static void wait_for_checkpoint(const Process& running, const std::string& out) {
    while (latest_step(out) == 0 && !running.ended()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }

  TemporaryFolder folder_;
};

TEST_F(AroundTheProcess, MessagesThatNobodyTakesEndNothing) {
  for (const char* err : {"/dev/full", "closed"}) {
    const std::string out = err[0] == '/' ? "full" : "closed";
    const Outcome outcome = thimble_says(train(out, {"--steps", "3"}), {.err = err});
    EXPECT_EQ(outcome.code, 0) << err;
    EXPECT_EQ(outcome.signal, 0) << err;
    EXPECT_TRUE(std::filesystem::exists(folder_ / out + "/latest/state.json"));
    EXPECT_EQ(thimble_says({"train", "mlp", "--frobnicate"}, {.err = err}).code, 2) << err;
    EXPECT_EQ(thimble_says({"plan", "mlp", "--memory", "1"}, {.err = err}).code, 3) << err;
  }
}

TEST_F(AroundTheProcess, ResultsThatNobodyTakesAreAnError) {
  for (const char* out : {"/dev/full", "closed"}) {
    for (const Words& words : {Words{"plan", "mlp", "--json"}, Words{"plan", "mlp"}, Words{"list"},
                               Words{"--help"}, Words{"--version"}}) {
      const Outcome outcome = thimble_says(words, {.out = out});
      EXPECT_EQ(outcome.code, 2) << words[0] << " to " << out;
      EXPECT_NE(outcome.err.find("cannot write to standard output"), std::string::npos);
    }
  }
}

TEST_F(AroundTheProcess, SignalsSaveACheckpoint) {
  const Words words = {"--steps", "100000", "--save-every", "0.07"};
  const Outcome whole = thimble_says(train("whole", {"--steps", "40", "--json"}));
  for (const int signal : {SIGINT, SIGTERM}) {
    const std::string name = std::to_string(signal), out = folder_ / name;
    Process running(train(name, words));
    wait_for_checkpoint(running, out);
    running.send(signal);
    const Outcome outcome = running.wait();
    EXPECT_EQ(outcome.code, 128 + signal) << outcome.err;
    const int64_t step = latest_step(out);
    EXPECT_NE(outcome.err.find(fmt::format("after step {} of 100000", step)), std::string::npos)
        << outcome.err;
    EXPECT_NE(outcome.err.find("--resume --out " + out), std::string::npos);
    EXPECT_EQ(checkpoint_entries(out), 2);
    if (step >= 40) continue;  // a fast machine
    const Outcome rest = thimble_says(train(name, {"--steps", "40", "--json", "--resume"}));
    EXPECT_EQ(rest.json()["resumed_at"], step);
    EXPECT_EQ(rest.json()["weights_sha256"], whole.json()["weights_sha256"]);
  }
}

TEST_F(AroundTheProcess, AFolderBelongsToOneRun) {
  Process first(train("run", {"--steps", "100000", "--save-every", "0.07"}));
  wait_for_checkpoint(first, folder_ / "run");
  for (const Words& more : {Words{"--overwrite"}, Words{"--resume"}, Words{"--resume", "auto"}}) {
    expect_mistake(thimble_says(train("run", Words{"--steps", "2"} + more)), "in use by process",
                   std::to_string(first.pid()));
  }
  first.kill();
  first.wait();
  const int64_t step = latest_step(folder_ / "run");
  const Outcome next =
      thimble_says(train("run", {"--steps", std::to_string(step + 1), "--json", "--resume"}));
  EXPECT_EQ(next.code, 0) << next.err;
}

TEST_F(AroundTheProcess, RunsStartedTogetherHaveFoldersOfTheirOwn) {
  const Words words = {"train", "mlp", "--threads", "1", "--steps", "2", "--no-eval", "--json"};
  Process a(words, {.folder = folder_.path()}), b(words, {.folder = folder_.path()});
  const Outcome first = a.wait(), second = b.wait();
  EXPECT_EQ(first.code, 0) << first.err;
  EXPECT_EQ(second.code, 0) << second.err;
  EXPECT_NE(first.json()["checkpoint"], second.json()["checkpoint"]);
}

TEST_F(AroundTheProcess, ACopyWhoseLinksWereFollowedIsSaidAtTheStart) {
  ASSERT_EQ(thimble_says(train("run", {"--steps", "2"})).code, 0);
  std::filesystem::copy(folder_ / "run", folder_ / "copy",  // follows links
                        std::filesystem::copy_options::recursive);
  expect_mistake(thimble_says(train("copy", {"--steps", "4", "--resume"})), folder_ / "copy/latest",
                 "is no link", "ln -s");
}

TEST_F(AroundTheProcess, ResumeAutoStartsWhereThereIsNothingYet) {
  expect_mistake(thimble_says(train("run", {"--steps", "2", "--resume"})), "no checkpoint");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "run"));
  const Outcome begun = thimble_says(train("run", {"--resume", "auto", "--steps", "2", "--json"}));
  EXPECT_EQ(begun.code, 0) << begun.err;
  EXPECT_NE(begun.err.find("a new run begins"), std::string::npos);
  const Outcome on = thimble_says(train("run", {"--resume=auto", "--steps", "3", "--json"}));
  EXPECT_EQ(on.json()["resumed_at"], 2);
  spill(folder_ / "r.toml", "model = \"mlp\"\nresume = \"auto\"\n");
  const Outcome recipe =
      thimble_says({"train", folder_ / "r.toml", "--threads", "1", "--no-eval", "--schedule",
                    "constant", "--steps", "4", "--json", "--out", folder_ / "run"});
  EXPECT_EQ(recipe.json()["resumed_at"], 3) << recipe.err;
  expect_mistake(thimble_says(train("run", {"--resume=maybe", "--steps", "5"})), "--resume");
}

TEST_F(AroundTheProcess, ResumingWithOtherFilesIsRefused) {
  const auto header = [](std::initializer_list<uint32_t> words) {
    std::string bytes;
    for (const uint32_t word : words) {
      for (int shift = 24; shift >= 0; shift -= 8)
        bytes.push_back(static_cast<char>(word >> shift));
    }
    return bytes;
  };
  const auto write_set = [&](uint32_t count, char pixel, char label) {
    for (const char* split : {"train", "t10k"}) {
      spill(folder_ / fmt::format("{}-images-idx3-ubyte", split),
            header({0x803, count, 8, 8}) + std::string(count * 64, pixel));
      spill(folder_ / fmt::format("{}-labels-idx1-ubyte", split),
            header({0x801, count}) + std::string(count, label));
    }
  };
  const Words data = {"--data", "mnist", "--data-dir", folder_.path(), "--batch", "4"};
  write_set(8, '\5', '\3');
  ASSERT_EQ(thimble_says(train("run", data + Words{"--steps", "2"})).code, 0);
  const Words again = train("run", data + Words{"--steps", "4", "--resume"});
  write_set(9, '\5', '\3');
  expect_mistake(thimble_says(again), "number of training records was 8 and is 9 now");
  write_set(8, '\5', '\4');
  expect_mistake(thimble_says(again), "sha256 of the training records");
  write_set(8, '\5', '\3');
  EXPECT_EQ(thimble_says(again).code, 0);
}

// Messages count against the limit as well: their writer must not die of it.
TEST_F(AroundTheProcess, AFileThatMayNotGrowIsAnErrorOfThatFile) {
  ASSERT_EQ(thimble_says(train("run", {"--steps", "2"})).code, 0);
  for (const rlim_t limit : {rlim_t{0}, rlim_t{100'000}}) {
    const Outcome outcome =
        thimble_says(train("run", {"--steps", "4", "--resume"}), {.file_limit = limit});
    EXPECT_EQ(outcome.code, 2) << outcome.signal;
    // With nothing allowed, there is no room for the message either.
    EXPECT_EQ(outcome.err.find("size limit") != std::string::npos, limit > 0) << outcome.err;
    EXPECT_EQ(latest_step(folder_ / "run"), 2);
  }
  EXPECT_EQ(thimble_says(train("run", {"--steps", "4", "--resume"})).code, 0);
}

}  // namespace
}  // namespace thimble
