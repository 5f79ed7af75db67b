// What a training step costs beyond its arena: nothing from the heap, and hardly anything at all.
#include <gtest/gtest.h>

#include <fstream>

#include "backend/cpu/library_heap.h"
#include "base/process.h"
#include "data/digits.h"
#include "data/generated.h"
#include "execute/program.h"
#include "pipeline.h"
#include "support/counting_heap.h"
#include "train/feeder.h"
#include "train/initialize.h"

namespace thimble {
namespace {

// A program with its data, one training step a call.
class Training {
 public:
  Training(const ModelOptions& options, Feeder& feeder, const std::string& optimizer = "adam")
      : feeder_(feeder), planned_(plan(options, optimizer)) {
    arena_ = planned_.backend->allocate(planned_.plan.arena);
    program_ = std::make_unique<Program>(model().graph, planned_.plan, *planned_.backend, *arena_);
    initialize(*program_, 1);
    feeder_.describe(*program_, model());
  }

  void step(int64_t number) {
    feeder_.fill_training(*program_, model(), number);
    const OptimizerInputs& scalars = planned_.training->scalars;
    program_->view<float>(scalars.learning_rate)[0] = 0.001f;
    if (scalars.step.valid()) {
      program_->view<float>(scalars.step)[0] = static_cast<float>(number + 1);
    }
    if (model().rng.valid()) program_->view<int64_t>(model().rng)[1] = number;
    program_->run();
  }

  const Model& model() const { return planned_.training->model; }
  Bytes arena() const { return planned_.plan.arena; }

 private:
  static PlannedStepProgram plan(const ModelOptions& options, const std::string& optimizer) {
    Recipe recipe;
    recipe.model = options;
    recipe.optimizer = parse_optimizer(optimizer);
    recipe.threads = 2;
    return std::get<PlannedStepProgram>(plan_training(recipe));
  }

  Feeder& feeder_;
  PlannedStepProgram planned_;
  std::unique_ptr<Memory> arena_;
  std::unique_ptr<Program> program_;
};

void expect_no_allocation(const ModelOptions& options, Feeder& feeder,
                          const std::string& optimizer) {
  Training training(options, feeder, optimizer);
  training.step(0);  // the first parallel region makes the threads
  const int64_t misses = library_heap_misses();
  EXPECT_EQ(allocations_in([&] {
              for (int64_t step = 1; step < 6; ++step) training.step(step);
            }),
            0);
  EXPECT_EQ(library_heap_misses(), misses);
}

class StepMemory : public testing::Test {
 protected:
  void SetUp() override {
    if (!kHeapIsCounted) GTEST_SKIP() << "sanitizers have a heap of their own";
  }
};

TEST_F(StepMemory, TheCounterCounts) {
  void* block = nullptr;
  const auto work = [&] {
    block = std::realloc(std::malloc(10), 1000);
    std::free(block);
    std::free(std::calloc(3, 5));
    std::free(std::aligned_alloc(64, 128));
    ASSERT_EQ(posix_memalign(&block, 64, 128), 0);
    std::free(block);
    ::operator delete(::operator new(10));
  };
  EXPECT_EQ(allocations_in(work), 6);
  EXPECT_EQ(allocations_in([] {}), 0);
}

TEST_F(StepMemory, FeedingAndTrainingAConvolutionalNetAllocatesNothing) {
  Digits digits;
  const auto feeder = make_image_feeder(digits, {.seed = 3, .augment = true, .crop_pad = 1});
  expect_no_allocation({.name = "wrn-10-1", .batch = 16, .image = {8, 8, 1}}, *feeder, "nesterov");
}

TEST_F(StepMemory, FeedingAndTrainingAnMlpWithDropoutAllocatesNothing) {
  Digits digits;
  const auto feeder = make_image_feeder(digits, {.seed = 3});
  expect_no_allocation({.name = "mlp", .batch = 32, .dropout = 0.5}, *feeder, "adam");
}

TEST_F(StepMemory, FeedingAndTrainingAnLstmAllocatesNothing) {
  const auto feeder = make_sequence_feeder({.seed = 3}, 640, 64);
  expect_no_allocation({.name = "lstm", .batch = 8, .hidden = 32, .length = 12}, *feeder, "adamw");
}

TEST_F(StepMemory, FeedingGeneratedImagesAllocatesNothing) {
  Generated generated({.image = {12, 12, 3}, .train_count = 64, .test_count = 8});
  const auto feeder = make_image_feeder(generated, {.augment = true});
  expect_no_allocation({.name = "wrn-10-1", .batch = 4, .image = {12, 12, 3}, .dropout = 0.3},
                       *feeder, "sgd");
}

// Makes the highest resident size start again from the present one; false where that cannot be.
bool restart_resident_peak() {
  std::ofstream file("/proc/self/clear_refs");
  file << "5";
  file.close();
  return file.good();
}

TEST_F(StepMemory, TheProcessGrowsByTheArenaAndLittleMore) {
  Generated generated({.image = {32, 32, 3}, .train_count = 200, .test_count = 50});
  const auto feeder = make_image_feeder(generated, {.augment = true});
  {  // oneDNN's code is made once, whatever the size of the net
    Training warm({.name = "wrn-16-2", .batch = 2, .image = {32, 32, 3}}, *feeder, "nesterov");
    warm.step(0);
  }
  if (!restart_resident_peak()) GTEST_SKIP() << "/proc/self/clear_refs cannot be written";
  const Bytes before = resident_now();
  Training training({.name = "wrn-16-2", .batch = 50, .image = {32, 32, 3}}, *feeder, "nesterov");
  for (int64_t step = 0; step < 3; ++step) training.step(step);
  const Bytes growth = resident_peak() - before;
  EXPECT_GT(training.arena(), Bytes(32 << 20));           // else this shows nothing
  EXPECT_GE(growth, training.arena() - Bytes(16 << 20));  // the arena really is what is used
  EXPECT_LE(growth, training.arena() + Bytes(16 << 20));
}

}  // namespace
}  // namespace thimble
