#include "train/time_step.h"

#include <algorithm>
#include <chrono>

#include "base/philox.h"
#include "train/initialize.h"
#include "train/step.h"

namespace thimble {
namespace {

// Rows of random numbers, made once for each of the places that a device reads them from.
class NoiseFeeder final : public Feeder {
 public:
  int64_t train_count() const override { return INT64_MAX; }
  int64_t test_count() const override { return 0; }

  void fill_training(Program& program, const Model& model, const TrainingRows& rows) override {
    program.view<float>(model.normalizer)[0] = 1.0f / static_cast<float>(rows.batch);
    if (filled_++ >= kPlaces) return;
    std::ranges::fill(program.view<int32_t>(model.labels), 0);
    if (model.pixels.valid()) {
      for (std::byte& pixel : program.bytes_of(model.pixels)) pixel = std::byte(next() & 255);
    } else {
      for (float& number : program.view<float>(model.sequence))
        number = 2 * uniform_from(next()) - 1;
    }
  }
  int64_t fill_test(Program&, const Model&, int64_t) override { return 0; }
  void describe(Program&, const Model&) override {}

 private:
  static constexpr int kPlaces = 8;  // programs of a step, twice the slots of each

  uint32_t next() {
    if (word_ == 4) {
      words_ = philox({counter_++, 0, 0, 0}, philox_key(1));
      word_ = 0;
    }
    return words_[word_++];
  }

  int filled_ = 0;
  uint32_t counter_ = 0;
  size_t word_ = 4;
  std::array<uint32_t, 4> words_{};
};

}  // namespace

double seconds_of_step(const PlannedStepProgram& planned) {
  constexpr int kWarm = 3, kTimed = 7;  // the second is recorded
  NoiseFeeder feeder;
  const std::unique_ptr<Memory> arena = planned.backend->allocate(planned.plan.arena);
  TrainingStep step(planned, feeder, *arena, 1);
  initialize(step.program(), 1);
  std::vector<double> seconds;
  for (int i = 0; i < kWarm + kTimed; ++i) {
    const auto start = std::chrono::steady_clock::now();
    step.run(i, 0);
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    if (i >= kWarm) seconds.push_back(taken.count());
  }
  std::ranges::nth_element(seconds, seconds.begin() + kTimed / 2);
  return seconds[kTimed / 2];
}

}  // namespace thimble
