// Several processes that train together, started as a user would start them.
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <iterator>

#include "support/run_thimble.h"
#include "support/sanitized.h"

namespace thimble {
namespace {

using Words = std::vector<std::string>;
using Clock = std::chrono::steady_clock;

Words mpirun(int ranks) {
  const Words start = {
      THIMBLE_MPIRUN, "--allow-run-as-root",   "--oversubscribe", "--bind-to", "none",
      "-np",          fmt::format("{}", ranks)};
  // Open MPI leaves memory behind in modules that it has unloaded: no name to leave it out by.
  return kSanitized ? start + Words{"-x", "ASAN_OPTIONS=detect_leaks=0"} : start;
}

class RanksProgram : public testing::Test {
 protected:
  void SetUp() override {
    if (std::string_view(THIMBLE_MPIRUN).empty()) {
      GTEST_SKIP() << "this build has no MPI: install libopenmpi-dev and openmpi-bin";
    }
  }

  static Words net(int64_t batch = 24, const char* norm = "group") {
    return {"train",    "wrn-10-1", "--norm",    norm,
            "--image",  "8,8,1",    "--batch",   fmt::format("{}", batch),
            "--data",   "digits",   "--threads", "1",
            "--no-eval"};
  }
  Outcome train(int ranks, const Words& more, const char* norm = "group") {
    return thimble_says(net(24, norm) + more, {.launcher = ranks > 1 ? mpirun(ranks) : Words{}});
  }
  std::string out() const { return folder_ / "run"; }

  const TemporaryFolder folder_;
};

TEST_F(RanksProgram, GiveTheBitsOfOneProcessWithAsManyMicrobatches) {
  for (const int ranks : {2, 4}) {
    const nlohmann::json expected =
        train(1, {"--steps", "3", "--json", "--losses", "--out", folder_ / fmt::format("{}", ranks),
                  "--microbatch", fmt::format("{}", 24 / ranks)})
            .json();
    for (const char* shard : {"none", "state", "gradients", "weights"}) {
      SCOPED_TRACE(fmt::format("{} ranks, {}", ranks, shard));
      const Outcome outcome = train(ranks, {"--steps", "3", "--json", "--losses", "--shard", shard,
                                            "--out", folder_ / fmt::format("{}-{}", shard, ranks)});
      ASSERT_EQ(outcome.code, 0) << outcome.err;
      const nlohmann::json got = outcome.json();
      EXPECT_EQ(got["weights_sha256"], expected["weights_sha256"]);
      EXPECT_EQ(got["losses"], expected["losses"]);
      ASSERT_EQ(got["rank_arena_bytes"].size(), static_cast<size_t>(ranks));
      for (const nlohmann::json& bytes : got["rank_arena_bytes"]) {
        EXPECT_EQ(bytes, got["arena_bytes"]);
      }
    }
  }
}

TEST_F(RanksProgram, SyncedStatisticsGiveTheLossOfOneProcess) {
  const Words all = {"--steps", "4", "--json", "--losses"};
  const nlohmann::json expected =
      train(1, all + Words{"--out", folder_ / "1"}, "batch").json()["losses"];
  for (const int ranks : {2, 4}) {
    SCOPED_TRACE(ranks);
    const Outcome outcome =
        train(ranks, all + Words{"--out", folder_ / fmt::format("{}", ranks)}, "synced");
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const nlohmann::json got = outcome.json()["losses"];
    ASSERT_EQ(got.size(), expected.size());
    for (size_t i = 0; i < got.size(); ++i) {
      EXPECT_NEAR(got[i].get<double>(), expected[i].get<double>(), 1e-5) << "step " << i;
    }
  }
}

TEST_F(RanksProgram, GoOnFromCheckpointsOfAnyNumberOfRanks) {
  const Words all = {"--microbatch", "6",    "--json",     "--shard", "gradients",
                     "--lr",         "0.01", "--schedule", "constant"};
  const auto until = [&](int ranks, const char* steps) {
    Words more = all + Words{"--steps", steps, "--out", out(), "--resume=auto"};
    if (ranks == 1) std::erase(more, "--shard"), std::erase(more, "gradients");
    const Outcome outcome = train(ranks, more);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return outcome.json();
  };
  until(2, "2");
  until(4, "4");
  const nlohmann::json last = until(1, "6");
  EXPECT_EQ(last["resumed_at"], 4);
  const Outcome straight = train(1, {"--microbatch", "6", "--json", "--lr", "0.01", "--schedule",
                                     "constant", "--steps", "6", "--out", folder_ / "straight"});
  EXPECT_EQ(last["weights_sha256"], straight.json()["weights_sha256"]);
}

// Each rank chooses for itself, and they choose the same; the first one says what.
TEST_F(RanksProgram, ABudgetChoosesTheSameOnEachOfThem) {
  const Words all = {"--optimizer", "sgd", "--steps", "2"};
  const Outcome chosen =
      train(2, all + Words{"--memory", "least", "--json", "--out", folder_ / "chosen"});
  ASSERT_EQ(chosen.code, 0) << chosen.err;
  Words typed = all + Words{"--json", "--out", folder_ / "typed"};
  std::istringstream flags(chosen.json()["fit"]["flags"].get<std::string>());
  for (std::string word; flags >> word;) typed.push_back(word);
  const Outcome again = train(2, typed);
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(again.json()["arena_bytes"], chosen.json()["arena_bytes"]);
  EXPECT_EQ(again.json()["weights_sha256"], chosen.json()["weights_sha256"]);
  const Outcome said = train(2, all + Words{"--memory", "least", "--out", folder_ / "said"});
  EXPECT_NE(said.err.find("fit: "), std::string::npos) << said.err;
  EXPECT_EQ(said.err.find("fit: "), said.err.rfind("fit: ")) << said.err;
  const Outcome tight = train(2, all + Words{"--memory", "1kB", "--out", folder_ / "tight"});
  EXPECT_EQ(tight.code, 3);
  EXPECT_EQ(tight.err.find("the smallest found is"), tight.err.rfind("the smallest found is"))
      << tight.err;
}

// mpirun -np 1 FIRST : -np 1 thimble SECOND, which is refused.
class RanksThatDiffer : public RanksProgram {
 protected:
  void expect_refused(const Words& first, const Words& second, std::string_view what) {
    const Words more = {"--steps", "2", "--out", out()};
    const Words launcher = mpirun(1) + first + more + Words{":", "-np", "1"};
    const Outcome outcome = thimble_says(second + more, {.launcher = launcher});
    EXPECT_EQ(outcome.code, 2) << outcome.err;
    EXPECT_NE(outcome.err.find(what), std::string::npos) << outcome.err;
  }
  void expect_same_refused(const Words& second, std::string_view what) {
    expect_refused(Words{THIMBLE_PROGRAM} + net(), second, what);
  }
};

TEST_F(RanksThatDiffer, InTheirRecipe) {
  expect_same_refused(net() + Words{"--seed", "2"},
                      "rank 1 was started with another recipe than rank 0: seed = 2, there 1");
  expect_same_refused(net(48), "batch = 48, there 24");
}

TEST_F(RanksThatDiffer, InTheirData) {
  const auto with = [&](const char* name, char pixel) {
    const std::string set = folder_ / name;
    std::filesystem::create_directory(set);
    using namespace std::string_literals;
    for (const char* split : {"train", "t10k"}) {
      spill(fmt::format("{}/{}-images-idx3-ubyte", set, split),
            "\0\0\x08\x03\0\0\0\x08\0\0\0\x08\0\0\0\x08"s + std::string(8 * 64, pixel));
      spill(fmt::format("{}/{}-labels-idx1-ubyte", set, split),
            "\0\0\x08\x01\0\0\0\x08"s + std::string(8, '\3'));
    }
    return Words{"train", "mlp",     "--data", "mnist",     "--data-dir",
                 set,     "--batch", "4",      "--threads", "1"};
  };
  expect_refused(Words{THIMBLE_PROGRAM} + with("one", '\5'), with("two", '\6'),
                 "rank 1 reads other data than rank 0: the sha256 of the training records");
}

// A build that differs in a byte, though it calls itself the same.
TEST_F(RanksThatDiffer, InTheirProgram) {
  const std::string other = folder_ / "thimble";
  std::filesystem::copy_file(THIMBLE_PROGRAM, other);
  std::ofstream(other, std::ios::binary | std::ios::app) << "x";
  std::filesystem::create_symlink(std::filesystem::path(THIMBLE_PROGRAM).parent_path() / "lib",
                                  folder_ / "lib");
  expect_refused(Words{other} + net(), net(), "rank 1 runs ");
}

TEST_F(RanksProgram, SayWhatDoesNotGoTogether) {
  expect_mistake(train(1, {"--ranks", "2", "--out", out()}), "mpirun -np 2 thimble train");
  const auto refused = [&](const Words& more, const char* what) {
    const Outcome outcome = train(2, more + Words{"--out", out()});
    EXPECT_EQ(outcome.code, 2);
    EXPECT_NE(outcome.err.find(what), std::string::npos) << outcome.err;
    // The first rank says it for all.
    EXPECT_EQ(outcome.err.find("thimble: "), outcome.err.rfind("thimble: ")) << outcome.err;
  };
  refused({"--ranks", "3"}, "--ranks");
  refused({"--microbatch", "24"}, "choose a --microbatch of 12");
  refused({"--optimizer", "adafactor", "--shard", "state"}, "choose --shard none");
}

// Ids of the processes that `parent` started: mpirun's are the ranks.
std::vector<pid_t> ranks_of(pid_t parent) {
  std::ifstream children(fmt::format("/proc/{0}/task/{0}/children", parent));
  return {std::istream_iterator<pid_t>(children), {}};
}

TEST_F(RanksProgram, EndWhereOneIsKilledAndGoOnToTheSameBits) {
  const Words all = {"--steps", "400", "--save-every", "20 steps", "--shard", "state", "--json"};
  const nlohmann::json expected = train(2, all + Words{"--out", folder_ / "undisturbed"}).json();
  for (const size_t victim : {size_t{1}, size_t{0}}) {
    SCOPED_TRACE(victim);
    Process running(net() + all + Words{"--out", out(), "--resume=auto"}, {.launcher = mpirun(2)});
    const auto begun = Clock::now();
    const auto patient = [&] { return Clock::now() - begun < std::chrono::seconds(60); };
    const int64_t before = latest_step(out());
    while (latest_step(out()) < before + 20 && patient() && !running.ended()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    const std::vector<pid_t> ranks = ranks_of(running.pid());
    ASSERT_EQ(ranks.size(), 2u);
    ::kill(ranks[victim], SIGKILL);
    const auto killed = Clock::now();
    const Outcome outcome = running.wait();
    EXPECT_LT(Clock::now() - killed, std::chrono::seconds(10));
    EXPECT_NE(outcome.code, 0);
    EXPECT_NE(outcome.err.find("thimble: "), std::string::npos) << outcome.err;
  }
  const Outcome last = train(2, all + Words{"--out", out(), "--resume"});
  ASSERT_EQ(last.code, 0) << last.err;
  EXPECT_GT(last.json()["resumed_at"], 0);
  EXPECT_EQ(last.json()["weights_sha256"], expected["weights_sha256"]);
}

}  // namespace
}  // namespace thimble
