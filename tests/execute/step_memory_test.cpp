// The memory of a training step beyond its arena: nothing from the heap, and hardly anything at all.
#include <gtest/gtest.h>

#include <fstream>

#include "backend/cpu/library_heap.h"
#include "base/host/process.h"
#include "data/dataset.h"
#include "execute/program.h"
#include "select/choose.h"
#include "support/counting_heap.h"
#include "train/feed/feeder.h"
#include "train/token_model.h"
#include "train/training_step.h"
#include "weights/initialize.h"

namespace thimble {
namespace {

// A program with its data, one training step a call.
class Training {
 public:
  Training(const Recipe& recipe, const Feeder& feeder) : planned_(plan(recipe)) {
    arena_ = planned_.backend().allocate(planned_.plan().arena);
    step_ = std::make_unique<TrainingStep>(planned_, feeder, *arena_, 1);
    initialize(step_->program(), 1);
    feeder.describe(step_->program(), planned_.full().model);
  }

  void step(int64_t number) { step_->run(number, 0.001); }
  Bytes arena() const { return planned_.plan().arena; }

 private:
  static PlannedTraining plan(Recipe recipe) {
    recipe.on.threads = 2;
    return std::get<PlannedTraining>(plan_training(recipe));
  }

  PlannedTraining planned_;
  std::unique_ptr<Memory> arena_;
  std::unique_ptr<TrainingStep> step_;
};

Recipe recipe_of(const ModelOptions& options, const std::string& optimizer,
                 int64_t microbatch = 0) {
  Recipe recipe;
  recipe.model = options;
  recipe.optimizer = parse_optimizer(optimizer);
  recipe.microbatch = microbatch;
  return recipe;
}

std::unique_ptr<Dataset> generated_images(const Shape& image, int64_t train, int64_t test) {
  return open_dataset("generated",
                      {.wanted = {{.name = "pixels", .dtype = DType::u8, .shape = image}},
                       .train_count = train,
                       .test_count = test});
}

// As many features as an lstm reads.
std::unique_ptr<Dataset> generated_sequences(int64_t length) {
  return open_dataset("sequences", {.wanted = {{.name = "sequence", .shape = {length, 50}}},
                                    .train_count = 640,
                                    .test_count = 64,
                                    .seed = 3});
}

void expect_no_allocation(const Recipe& recipe, const Feeder& feeder) {
  Training training(recipe, feeder);
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
  const auto digits = open_dataset("digits");
  const Feeder feeder(*digits, {.seed = 3, .augment = true, .crop_pad = 1});
  expect_no_allocation(recipe_of({.name = "wrn-10-1", .batch = 16, .image = {8, 8, 1}}, "nesterov"),
                       feeder);
}

TEST_F(StepMemory, FeedingAndTrainingASparseNetInMicrobatchesAllocatesNothing) {
  const auto digits = open_dataset("digits");
  const Feeder feeder(*digits, {.seed = 3});
  Recipe recipe = recipe_of({.name = "wrn-10-1", .batch = 16, .image = {8, 8, 1}}, "nesterov", 6);
  recipe.sparsity.density = 0.3;
  expect_no_allocation(recipe, feeder);
}

TEST_F(StepMemory, FeedingAndTrainingAnMlpWithDropoutAllocatesNothing) {
  const auto digits = open_dataset("digits");
  const Feeder feeder(*digits, {.seed = 3});
  expect_no_allocation(recipe_of({.name = "mlp", .batch = 32, .dropout = 0.5}, "adam"), feeder);
}

TEST_F(StepMemory, FeedingAndTrainingAnLstmAllocatesNothing) {
  const auto sequences = generated_sequences(12);
  const Feeder feeder(*sequences, {.seed = 3});
  expect_no_allocation(recipe_of({.name = "lstm:hidden=32,length=12", .batch = 8}, "adamw"),
                       feeder);
}

TEST_F(StepMemory, FeedingGeneratedImagesAllocatesNothing) {
  const auto generated = generated_images({12, 12, 3}, 64, 8);
  const Feeder feeder(*generated, {.augment = true});
  expect_no_allocation(
      recipe_of({.name = "wrn-10-1", .batch = 4, .image = {12, 12, 3}, .dropout = 0.3}, "sgd"),
      feeder);
}

// Sizes of two kinds, gradients folded, constants of the last microbatch's own: all of it at once.
TEST_F(StepMemory, MicrobatchesAllocateNothing) {
  const auto digits = open_dataset("digits");
  const Feeder images(*digits, {.seed = 3, .augment = true, .crop_pad = 1});
  Recipe folded = recipe_of({.name = "wrn-10-1", .batch = 16, .image = {8, 8, 1}}, "sgd", 5);
  folded.optimizer.fold = true;
  folded.planner = "sqrt_segments";
  expect_no_allocation(folded, images);
  const auto generated = generated_sequences(12);
  const Feeder sequences(*generated, {.seed = 3});
  expect_no_allocation(recipe_of({.name = "lstm:hidden=32,length=12", .batch = 8}, "adamw", 3),
                       sequences);
}

TEST_F(StepMemory, LengthsByTurnsAllocateNothing) {
  const Tokens tokens({5, 5, 5, 12}, 12, 40, 8);
  const Feeder feeder(tokens, {.seed = 4});
  for (const int64_t microbatch : {0, 3}) {
    expect_no_allocation(token_recipe({5, 12}, 4, microbatch), feeder);
  }
}

// Makes the highest resident size start again from the present one; false where that cannot be.
bool restart_resident_peak() {
  std::ofstream file("/proc/self/clear_refs");
  file << "5";
  file.close();
  return file.good();
}

TEST_F(StepMemory, TheProcessGrowsByTheArenaAndLittleMore) {
  const auto generated = generated_images({32, 32, 3}, 200, 50);
  const Feeder feeder(*generated, {.augment = true});
  {  // oneDNN's code is made once, whatever the size of the net
    Training warm(recipe_of({.name = "wrn-16-2", .batch = 2, .image = {32, 32, 3}}, "nesterov"),
                  feeder);
    warm.step(0);
  }
  if (!restart_resident_peak()) GTEST_SKIP() << "/proc/self/clear_refs cannot be written";
  const Bytes before = resident_now();
  Training training(recipe_of({.name = "wrn-16-2", .batch = 50, .image = {32, 32, 3}}, "nesterov"),
                    feeder);
  for (int64_t step = 0; step < 3; ++step) training.step(step);
  const Bytes growth = resident_peak() - before;
  EXPECT_GT(training.arena(), Bytes(32 << 20));           // else this shows nothing
  EXPECT_GE(growth, training.arena() - Bytes(16 << 20));  // the arena really is what is used
  EXPECT_LE(growth, training.arena() + Bytes(16 << 20));
}

}  // namespace
}  // namespace thimble
