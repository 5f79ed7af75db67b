// A step allocates nothing: malloc and its kin are replaced in this executable by ones that count.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "backend/cpu/library_heap.h"
#include "execute/program.h"
#include "select/choose.h"

namespace {

std::atomic<bool> g_counting{false};
std::atomic<int64_t> g_allocations{0};

void count_allocation() {
  if (g_counting.load(std::memory_order_relaxed)) g_allocations.fetch_add(1);
}

}  // namespace

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
extern "C" {
void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* pointer, size_t size);
void* __libc_memalign(size_t alignment, size_t size);

void* malloc(size_t size) {
  count_allocation();
  return __libc_malloc(size);
}
void* calloc(size_t count, size_t size) {
  count_allocation();
  return __libc_calloc(count, size);
}
void* realloc(void* pointer, size_t size) {
  count_allocation();
  return __libc_realloc(pointer, size);
}
void* aligned_alloc(size_t alignment, size_t size) {
  count_allocation();
  return __libc_memalign(alignment, size);
}
int posix_memalign(void** pointer, size_t alignment, size_t size) {
  count_allocation();
  *pointer = __libc_memalign(alignment, size);
  return *pointer == nullptr ? 12 : 0;
}
}
#endif

namespace thimble {
namespace {

class StepHeap : public testing::Test {
 protected:
  void SetUp() override {
    if (!library_heap_in_use()) GTEST_SKIP() << "sanitizers have a heap of their own";
    setenv("OMP_WAIT_POLICY", "passive", 1);  // as ctest does: no threads come and go with others
  }
};

int64_t allocations_in(const std::function<void()>& body) {
  g_allocations = 0;
  g_counting = true;
  body();
  g_counting = false;
  return g_allocations;
}

// Libraries register what is to be done at exit when they first run, and libc makes room for 32 of
// those at a time: has it make room now.
void make_room_for_exit_handlers() {
  while (allocations_in([] { std::atexit([] {}); }) == 0) {
  }
}

// The first parallel region makes the threads; nothing else is left for a first step to do.
void make_threads(Backend& backend) {
  const TensorType type = {{1 << 20}};
  const Signature fill = {find_op("fill"), {{"value", 1.0}}, {}, {type}};
  std::vector<float> values(1 << 20);
  const TensorRef output = {values.data(), type};
  backend.kernel(fill).run({.attrs = &fill.attrs, .outputs = {&output, 1}});
}

void expect_no_allocation(const std::string& model, int64_t batch, int64_t microbatch = 0,
                          Recipe recipe = {}) {
  recipe.model.name = model;
  recipe.model.batch = batch;
  recipe.microbatch = microbatch;
  auto planned = plan_training(recipe);
  auto& step = std::get<PlannedTraining>(planned);
  const auto arena = step.backend().allocate(step.plan().arena);
  Program program(step.graph(), step.plan(), step.backend(), *arena);
  make_threads(step.backend());
  make_room_for_exit_handlers();
  const int64_t misses = library_heap_misses();
  EXPECT_EQ(allocations_in([&] { program.run(); }), 0) << model << ", first step";
  EXPECT_EQ(allocations_in([&] { program.run(); }), 0) << model << ", second step";
  EXPECT_EQ(library_heap_misses(), misses) << model;
}

TEST_F(StepHeap, TheCounterCounts) {
  EXPECT_EQ(allocations_in([] { std::free(std::malloc(10)); }), 1);
  EXPECT_EQ(allocations_in([] { ::operator delete(::operator new(10)); }), 1);
}

TEST_F(StepHeap, ConvolutionalStepAllocatesNothing) { expect_no_allocation("wrn-10-1", 4); }
TEST_F(StepHeap, FullyConnectedStepAllocatesNothing) { expect_no_allocation("mlp", 16); }
TEST_F(StepHeap, RecurrentStepAllocatesNothing) { expect_no_allocation("lstm", 8); }

TEST_F(StepHeap, AttentiveStepAllocatesNothing) {
  expect_no_allocation("gpt:layers=1,heads=2,width=32,length=70,dropout=0.1,positions=rotary", 2);
}

TEST_F(StepHeap, MicrobatchesAllocateNothing) {
  expect_no_allocation("wrn-10-1", 4, 2);
  expect_no_allocation("lstm", 8, 4);
}

TEST_F(StepHeap, StagingAllocatesNothing) {
  Recipe recipe;
  recipe.model.storage = DType::f16;
  recipe.optimizer.rounding = Rounding::stochastic;
  recipe.optimizer.scaling.kind = LossScaling::Kind::dynamic;
  expect_no_allocation("wrn-10-1", 4, 2, recipe);
  expect_no_allocation("mlp", 16, 0, recipe);
}

TEST_F(StepHeap, SmallRequestsInsideAStepComeFromSlots) {
  enter_step();
  std::unique_ptr<char[]> survivor;
  EXPECT_EQ(allocations_in([&] {
              for (int i = 0; i < 1000; ++i) delete new int(i);
              survivor = std::make_unique<char[]>(512);
              survivor[511] = 'x';
            }),
            0);
  leave_step();
  EXPECT_EQ(survivor[511], 'x');
  survivor.reset();  // outside of the step it was made in
}

TEST_F(StepHeap, WhatFindsNoSlotIsCountedAndServed) {
  const int64_t before = library_heap_misses();
  enter_step();
  const auto large = std::make_unique<char[]>(513);
  std::unique_ptr<int> many[200];
  for (auto& one : many) one = std::make_unique<int>(7);
  leave_step();
  // The large one, and those beyond 128 slots.
  EXPECT_GE(library_heap_misses() - before, 1 + 200 - 128);
  for (const auto& one : many) EXPECT_EQ(*one, 7);
}

TEST_F(StepHeap, SlotsAreSharedSafelyBetweenThreads) {
  enter_step();
  std::atomic<int> torn{0};
  const auto work = [&torn](int from) {
    for (int i = from; i < from + 10000; ++i) {
      const auto mine = std::make_unique<std::array<int, 16>>();
      mine->fill(i);
      for (const int value : *mine) torn += value == i ? 0 : 1;
    }
  };
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) threads.emplace_back(work, t * 10000);
  for (std::thread& thread : threads) thread.join();
  leave_step();
  EXPECT_EQ(torn, 0);
}

}  // namespace
}  // namespace thimble
