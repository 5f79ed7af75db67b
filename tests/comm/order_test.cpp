// Ranks meet in one order, however many calls a device runs at the same time.
#include <gtest/gtest.h>

#include <algorithm>

#include "comm/communicator.h"
#include "execute/program.h"
#include "select/choose.h"
#include "weights/initialize.h"

namespace thimble {
namespace {

// Ranks that count their meetings.
class Counting final : public Communicator {
 public:
  std::string_view name() const override { return "counting"; }
  int rank() const override { return 0; }
  int size() const override { return 2; }
  void exchange(const Pieces&, const Pieces&) override { ++meetings; }
  void all_gather(const Pieces&) override { ++meetings; }
  void broadcast(std::span<std::byte>, int) override { ++meetings; }

  int meetings = 0;
};

// The cpu as a device of several streams, which looks at what it is asked to record.
class Recorder final : public Backend {
 public:
  struct Seen {
    int stream;
    std::vector<int> waits_for;
    bool meets;
  };

  explicit Recorder(Backend& cpu) : cpu_(cpu) { join(ranks_); }

  std::string_view name() const override { return "recorder"; }
  std::string machine() const override { return "none"; }
  bool runs() const override { return true; }
  bool has_device_memory() const override { return true; }
  int streams() const override { return 4; }
  Kernel& kernel(const Signature& signature) override { return cpu_.kernel(signature); }
  double seconds(const Signature& signature) const override { return cpu_.seconds(signature); }
  std::unique_ptr<Memory> allocate(Bytes size) override { return cpu_.allocate(size); }
  void copy_in(std::byte* to, std::span<const std::byte> from) override { cpu_.copy_in(to, from); }
  void copy_out(std::span<std::byte> to, const std::byte* from) override {
    cpu_.copy_out(to, from);
  }
  void synchronise() override {}
  double seconds_for(const std::function<void()>& work) override { return cpu_.seconds_for(work); }
  std::unique_ptr<CapturedGraph> capture(std::span<const Launch> launches) override {
    seen.clear();
    for (const Launch& launch : launches) {
      ranks_.meetings = 0;
      launch.make();
      seen.push_back({launch.stream, launch.waits_for, ranks_.meetings > 0});
    }
    return std::make_unique<Nothing>();
  }

  std::unique_ptr<Event> make_event() override { return std::make_unique<Now>(); }

  std::vector<Seen> seen;

 private:
  class Nothing final : public CapturedGraph {
    void run() override {}
  };
  class Now final : public Event {
    void mark() override {}
    void wait() override {}
  };
  Backend& cpu_;
  Counting ranks_;
};

TEST(Order, EveryMeetingWaitsForTheOneBefore) {
  for (const Shard shard : {Shard::none, Shard::state, Shard::weights}) {
    SCOPED_TRACE(name_of(shard));
    Recipe recipe;
    recipe.model = {.name = "wrn-10-1", .batch = 8, .image = {8, 8, 1}};
    recipe.ranks = {2, shard};
    recipe.on.threads = 1;
    const PlannedTraining planned = std::get<PlannedTraining>(plan_training(recipe));
    Recorder device(planned.backend());
    const auto arena = device.allocate(planned.plan().arena);
    std::fill_n(arena->base(), arena->size().count, std::byte{0});
    Program program(planned.graph(), planned.plan(), device, *arena);
    program.run_phase(Phase::per_microbatch);  // plainly; the second time it is recorded
    program.run_phase(Phase::per_microbatch);

    const std::vector<Recorder::Seen>& launches = device.seen;
    std::vector<std::vector<bool>> before(launches.size());  // over when it begins
    std::vector<size_t> meetings;
    bool several_streams = false;
    for (size_t i = 0; i < launches.size(); ++i) {
      before[i].resize(launches.size());
      const auto add = [&](size_t other) {
        before[i][other] = true;
        for (size_t k = 0; k < other; ++k) before[i][k] = before[i][k] || before[other][k];
      };
      for (size_t other = 0; other < i; ++other) {
        if (launches[other].stream == launches[i].stream) add(other);
      }
      for (const int other : launches[i].waits_for) add(static_cast<size_t>(other));
      several_streams = several_streams || launches[i].stream > 0;
      if (launches[i].meets) meetings.push_back(i);
    }
    EXPECT_TRUE(several_streams);
    ASSERT_GT(meetings.size(), 10u);
    for (size_t m = 1; m < meetings.size(); ++m) {
      EXPECT_TRUE(before[meetings[m]][meetings[m - 1]])
          << "meeting " << m << " may come before the one in front of it";
    }
  }
}

}  // namespace
}  // namespace thimble
