// The C functions as a C program calls them: callbacks that fail, versions of structures, nothing at all.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "../file_support.h"
#include "thimble/thimble.h"

namespace {

using thimble::TemporaryFolder;

struct Recipe {
  explicit Recipe(const std::string& more = "") {
    EXPECT_EQ(thimble_recipe_new("mlp", &handle), THIMBLE_OK) << thimble_last_error();
    EXPECT_EQ(
        thimble_recipe_read(handle, ("image = [8, 8, 1]\nclasses = 4\nbatch = 10\nthreads = 1\n"
                                     "hidden = 16\nschedule = \"constant\"\n" +
                                     more)
                                        .c_str()),
        THIMBLE_OK)
        << thimble_last_error();
  }
  ~Recipe() { thimble_recipe_free(handle); }
  thimble_recipe* handle = nullptr;
};

struct Plan {
  explicit Plan(const std::string& more = "") {
    EXPECT_EQ(thimble_plan_new(Recipe(more).handle, 0, &handle), THIMBLE_OK)
        << thimble_last_error();
  }
  ~Plan() { thimble_plan_free(handle); }
  thimble_plan* handle = nullptr;
};

// Fills batches, and fails when told to.
struct Source {
  int64_t fails_in_fill = -1;     // at this step, in its second microbatch
  int64_t fails_in_prepare = -1;  // at this step
  bool says_why = true;
  int64_t first_step = 0;  // whose rows come first
  int calls = 0;

  static int32_t fill(void* context, thimble_batch* batch) {
    auto& self = *static_cast<Source*>(context);
    ++self.calls;
    if (batch->test != 0) {
      batch->filled = batch->first >= 10 ? 0 : std::min<int64_t>(batch->rows, 10 - batch->first);
    } else if (batch->step == self.fails_in_fill && batch->first > 0) {
      if (self.says_why) thimble_set_error("the disk with the pictures is gone");
      return 1;
    }
    auto* pixels = static_cast<uint8_t*>(batch->fields[0].data);
    auto* labels = static_cast<int32_t*>(batch->fields[1].data);
    for (int64_t row = 0; row < batch->rows; ++row) {
      const int64_t number = (self.first_step + batch->step) * 10 + batch->first + row;
      labels[row] = static_cast<int32_t>(number % 4);
      for (int64_t i = 0; i < 64; ++i) {
        pixels[64 * row + i] = static_cast<uint8_t>(number * 31 + i * (number % 4));
      }
    }
    return 0;
  }
  static int32_t prepare(void* context, int64_t step) {
    const auto& self = *static_cast<Source*>(context);
    if (step != self.fails_in_prepare) return 0;
    thimble_set_error("nothing came");
    return 1;
  }

  thimble_run_options options() {
    thimble_run_options options = {};
    options.size = sizeof(options);
    options.context = this;
    options.fill = fill;
    options.prepare = prepare;
    options.tests = 1;
    return options;
  }
};

struct OneRun {
  OneRun(const Plan& plan, const thimble_run_options& options) {
    EXPECT_EQ(thimble_run_new(plan.handle, &options, &handle), THIMBLE_OK) << thimble_last_error();
  }
  ~OneRun() { thimble_run_free(handle); }

  std::vector<float> weight(const char* name) {
    int32_t index = -1;
    EXPECT_EQ(thimble_run_find_weight(handle, name, &index), THIMBLE_OK) << thimble_last_error();
    thimble_tensor tensor = {};
    EXPECT_EQ(thimble_run_weight(handle, index, &tensor), THIMBLE_OK);
    std::vector<float> numbers(static_cast<size_t>(tensor.bytes) / sizeof(float));
    EXPECT_EQ(thimble_run_read_weight(handle, index, numbers.data(), tensor.bytes), THIMBLE_OK);
    EXPECT_EQ(std::memcmp(numbers.data(), tensor.data, static_cast<size_t>(tensor.bytes)), 0);
    return numbers;
  }
  thimble_run* handle = nullptr;
};

// The state that the optimizer keeps of a weight.
std::vector<float> state(const OneRun& run, const char* weight, const char* name) {
  int32_t index = -1;
  EXPECT_EQ(thimble_run_find_weight(run.handle, weight, &index), THIMBLE_OK);
  EXPECT_EQ(thimble_run_has_state(run.handle, index, name), 1);
  thimble_tensor tensor = {};
  EXPECT_EQ(thimble_run_weight(run.handle, index, &tensor), THIMBLE_OK);
  std::vector<float> numbers(static_cast<size_t>(tensor.bytes) / sizeof(float));
  EXPECT_EQ(thimble_run_read_state(run.handle, index, name, numbers.data(), tensor.bytes),
            THIMBLE_OK);
  return numbers;
}

std::string last() { return thimble_last_error(); }

TEST(Api, AStepIsTheSameHoweverItIsDriven) {
  Source source;
  const Plan plan("steps = 6");
  OneRun stepped(plan, source.options()), whole(plan, source.options());
  thimble_figures figures = {};
  for (int i = 0; i < 6; ++i) {
    ASSERT_EQ(thimble_run_step(stepped.handle, &figures), THIMBLE_OK) << last();
    EXPECT_EQ(figures.steps, i + 1);
    EXPECT_TRUE(std::isfinite(figures.loss));
    ASSERT_EQ(figures.metric_count, 1);
    EXPECT_STREQ(figures.metrics[0].name, "accuracy");
  }
  ASSERT_EQ(thimble_run_train(whole.handle, nullptr, nullptr), THIMBLE_OK) << last();
  EXPECT_EQ(stepped.weight("classifier.weight"), whole.weight("classifier.weight"));
  EXPECT_NE(std::string(thimble_run_result(whole.handle)).find("\"steps\":6"), std::string::npos);
  ASSERT_EQ(thimble_run_evaluate(whole.handle, nullptr, nullptr, &figures), THIMBLE_OK);
  EXPECT_EQ(figures.records, 10);
}

// A first step at a rate of 0 leaves every gradient as the momentum, and the weights as they were:
// what a step at a rate of 1/2 takes away is half of it.
TEST(Api, AFirstStepsMomentumIsItsGradient) {
  for (const char* parts : {"", "microbatch = 4\n"}) {
    Source source;
    const std::string recipe = std::string(parts) + "optimizer = \"sgd\"\nmomentum = 0.9\n";
    OneRun still(Plan(recipe + "lr = 0"), source.options());
    OneRun plain(Plan(std::string(parts) + "optimizer = \"sgd\"\nmomentum = 0\nlr = 0.5"),
                 source.options());
    const std::vector<float> before = still.weight("classifier.weight");
    ASSERT_EQ(thimble_run_step(still.handle, nullptr), THIMBLE_OK) << last();
    ASSERT_EQ(thimble_run_step(plain.handle, nullptr), THIMBLE_OK) << last();
    EXPECT_EQ(still.weight("classifier.weight"), before);
    const std::vector<float> gradient = state(still, "classifier.weight", "momentum");
    const std::vector<float> after = plain.weight("classifier.weight");
    for (size_t i = 0; i < before.size(); ++i) {
      EXPECT_EQ(after[i], before[i] - 0.5f * gradient[i]) << i;
    }
    for (int32_t w = 0; w < thimble_run_weight_count(plain.handle); ++w) {
      EXPECT_EQ(thimble_run_has_state(plain.handle, w, "momentum"), 0);
      EXPECT_EQ(thimble_run_has_state(still.handle, w, "first_moment"), 0);
    }
  }
}

TEST(Api, AnOptimizersStateGoesOutAndIn) {
  Source source, later;
  const Plan plan("steps = 6\noptimizer = \"adamw\"");
  OneRun whole(plan, source.options()), begun(plan, source.options());
  for (int i = 0; i < 6; ++i) ASSERT_EQ(thimble_run_step(whole.handle, nullptr), THIMBLE_OK);
  for (int i = 0; i < 2; ++i) ASSERT_EQ(thimble_run_step(begun.handle, nullptr), THIMBLE_OK);
  const TemporaryFolder folder;
  const std::string weights = folder / "w.safetensors", out = folder / "out";
  ASSERT_EQ(thimble_run_export(begun.handle, weights.c_str()), THIMBLE_OK) << last();
  later.first_step = 2;
  thimble_run_options options = later.options();
  options.weights = weights.c_str();
  options.optimizer_steps = 2;
  options.out = out.c_str();
  {
    OneRun other(plan, options);
    for (int32_t w = 0; w < thimble_run_weight_count(other.handle); ++w) {
      thimble_tensor tensor = {};
      ASSERT_EQ(thimble_run_weight(other.handle, w, &tensor), THIMBLE_OK);
      for (const char* name : {"first_moment", "second_moment"}) {
        if (thimble_run_has_state(other.handle, w, name) == 0) continue;
        const std::vector<float> numbers = state(begun, tensor.name, name);
        ASSERT_EQ(thimble_run_write_state(other.handle, w, name, numbers.data(), tensor.bytes),
                  THIMBLE_OK)
            << last();
      }
    }
    for (int i = 0; i < 2; ++i) ASSERT_EQ(thimble_run_step(other.handle, nullptr), THIMBLE_OK);
    ASSERT_EQ(thimble_run_save(other.handle, nullptr), THIMBLE_OK) << last();
  }
  // A checkpoint counts the steps that were made before its run.
  options.weights = nullptr;
  options.optimizer_steps = 0;
  options.resume = THIMBLE_RESUME;
  OneRun resumed(plan, options);
  for (int i = 0; i < 2; ++i) ASSERT_EQ(thimble_run_step(resumed.handle, nullptr), THIMBLE_OK);
  EXPECT_EQ(resumed.weight("classifier.weight"), whole.weight("classifier.weight"));
  EXPECT_EQ(state(resumed, "classifier.weight", "second_moment"),
            state(whole, "classifier.weight", "second_moment"));
}

TEST(Api, StateThatIsNotThereIsNamed) {
  Source source;
  OneRun adam(Plan("optimizer = \"adam\""), source.options());
  float number = 0;
  EXPECT_EQ(thimble_run_read_state(adam.handle, 0, "momentum", &number, 4), THIMBLE_MISTAKE);
  EXPECT_NE(last().find("no 'momentum' of '"), std::string::npos) << last();
  int32_t index = -1;
  ASSERT_EQ(thimble_run_find_weight(adam.handle, "classifier.weight", &index), THIMBLE_OK);
  EXPECT_EQ(thimble_run_write_state(adam.handle, index, "first_moment", &number, 4),
            THIMBLE_MISTAKE);
  EXPECT_NE(last().find("bytes, not 4"), std::string::npos) << last();
  EXPECT_EQ(thimble_run_has_state(adam.handle, 99, "first_moment"), 0);
  EXPECT_EQ(thimble_run_has_state(nullptr, 0, "first_moment"), 0);
  EXPECT_EQ(thimble_run_read_state(nullptr, 0, "first_moment", &number, 4), THIMBLE_MISTAKE);
  thimble_run_options options = source.options();
  options.optimizer_steps = -1;
  thimble_run* run = nullptr;
  EXPECT_EQ(thimble_run_new(Plan().handle, &options, &run), THIMBLE_MISTAKE);
  EXPECT_NE(last().find("-1 steps"), std::string::npos) << last();
}

TEST(Api, AStepThatWasNotBegunLeavesTheRunGood) {
  Source good, bad;
  bad.fails_in_prepare = 2;
  const Plan plan("microbatch = 4\noptimizer = \"sgd\"\nmomentum = 0.9");
  OneRun expected(plan, good.options()), run(plan, bad.options());
  for (int i = 0; i < 4; ++i) {
    ASSERT_EQ(thimble_run_step(expected.handle, nullptr), THIMBLE_OK);
    if (i == 2) {
      ASSERT_EQ(thimble_run_step(run.handle, nullptr), THIMBLE_CALLBACK);
      EXPECT_EQ(last(), "nothing came");
      EXPECT_EQ(thimble_run_done(run.handle), 2);
      bad.fails_in_prepare = -1;
    }
    ASSERT_EQ(thimble_run_step(run.handle, nullptr), THIMBLE_OK) << last();
  }
  EXPECT_EQ(run.weight("hidden1.weight"), expected.weight("hidden1.weight"));
}

TEST(Api, AStepLeftInItsMiddleCannotGoOnButFromACheckpoint) {
  const TemporaryFolder folder;
  const std::string out = folder / "out";
  const Plan plan("microbatch = 4\nsteps = 5");
  Source source;
  source.fails_in_fill = 3;
  thimble_run_options options = source.options();
  options.out = out.c_str();
  {
    OneRun run(plan, options);
    for (int i = 0; i < 3; ++i) ASSERT_EQ(thimble_run_step(run.handle, nullptr), THIMBLE_OK);
    const char* saved = nullptr;
    ASSERT_EQ(thimble_run_save(run.handle, &saved), THIMBLE_OK) << last();
    ASSERT_EQ(thimble_run_step(run.handle, nullptr), THIMBLE_CALLBACK);
    EXPECT_EQ(last(), "the disk with the pictures is gone");
    source.fails_in_fill = -1;
    EXPECT_EQ(thimble_run_step(run.handle, nullptr), THIMBLE_MISTAKE);
    EXPECT_NE(last().find("left in its middle"), std::string::npos);
    EXPECT_NE(last().find("step-00000003"), std::string::npos);
    EXPECT_EQ(thimble_run_save(run.handle, nullptr), THIMBLE_MISTAKE);
  }
  options.resume = THIMBLE_RESUME;
  OneRun again(plan, options);
  EXPECT_EQ(thimble_run_done(again.handle), 3);
  EXPECT_EQ(thimble_run_train(again.handle, nullptr, nullptr), THIMBLE_OK) << last();
  options.out = nullptr;
  options.resume = THIMBLE_START;
  OneRun whole(plan, options);
  EXPECT_EQ(thimble_run_train(whole.handle, nullptr, nullptr), THIMBLE_OK) << last();
  EXPECT_EQ(again.weight("classifier.weight"), whole.weight("classifier.weight"));
}

TEST(Api, ACallbackNeedNotSayWhy) {
  Source source;
  source.fails_in_fill = 0;
  source.says_why = false;
  OneRun run(Plan("microbatch = 4"), source.options());
  ASSERT_EQ(thimble_run_step(run.handle, nullptr), THIMBLE_CALLBACK);
  EXPECT_NE(last().find("the callback 'fill' failed"), std::string::npos);
}

TEST(Api, StopsWithACheckpoint) {
  const TemporaryFolder folder;
  const std::string out = folder / "out";
  Source source;
  thimble_run_options options = source.options();
  options.out = out.c_str();
  OneRun run(Plan("steps = 1000"), options);
  const auto show = [](void* context, const thimble_progress* progress) -> int32_t {
    if (progress->step == 4) thimble_run_stop(static_cast<thimble_run*>(context));
    return 0;
  };
  ASSERT_EQ(thimble_run_train(run.handle, show, run.handle), THIMBLE_STOPPED);
  EXPECT_NE(last().find("stopped after step"), std::string::npos);
  EXPECT_TRUE(std::filesystem::exists(out + "/latest/weights.safetensors"));
}

TEST(Api, OldCallersHaveFewerMembers) {
  Source source;
  thimble_run_options options = source.options();
  options.size = offsetof(thimble_run_options, rate);
  options.rate = reinterpret_cast<thimble_rate>(1);  // behind what the caller knows of
  OneRun run(Plan(), options);
  EXPECT_EQ(thimble_run_step(run.handle, nullptr), THIMBLE_OK) << last();
  thimble_run* none = nullptr;
  options.size = 3;
  EXPECT_EQ(thimble_run_new(Plan().handle, &options, &none), THIMBLE_MISTAKE);
  EXPECT_NE(last().find("sizeof(thimble_run_options)"), std::string::npos);
}

TEST(Api, NothingIsAMistakeNotACrash) {
  thimble_plan* plan = nullptr;
  thimble_run* run = nullptr;
  EXPECT_EQ(thimble_recipe_new("mlp", nullptr), THIMBLE_MISTAKE);
  EXPECT_EQ(thimble_recipe_set(nullptr, "batch", "1"), THIMBLE_MISTAKE);
  EXPECT_EQ(thimble_recipe_set(Recipe().handle, nullptr, "1"), THIMBLE_MISTAKE);
  EXPECT_EQ(thimble_recipe_set(Recipe().handle, "batch", nullptr), THIMBLE_MISTAKE);
  EXPECT_EQ(thimble_plan_new(nullptr, 0, &plan), THIMBLE_MISTAKE);
  EXPECT_EQ(thimble_run_new(nullptr, nullptr, &run), THIMBLE_MISTAKE);
  EXPECT_EQ(thimble_run_new(Plan().handle, nullptr, &run), THIMBLE_MISTAKE);
  EXPECT_NE(last().find("no data"), std::string::npos);
  EXPECT_EQ(thimble_run_step(nullptr, nullptr), THIMBLE_MISTAKE);
  EXPECT_EQ(thimble_plan_bytes(nullptr), 0);
  thimble_plan_free(nullptr);
  thimble_run_free(nullptr);
  thimble_recipe_free(nullptr);
}

TEST(Api, ASearchEndsWhenItsWatchSaysSo) {
  thimble_plan* plan = nullptr;
  int asked = 0;
  const auto stop = [](void* context) -> int32_t { return ++*static_cast<int*>(context); };
  EXPECT_EQ(thimble_plan_new_watched(Recipe("memory = \"least\"\n").handle, 0, stop, &asked, &plan),
            THIMBLE_CALLBACK);
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(plan, nullptr);
  const auto go_on = [](void*) -> int32_t { return 0; };
  EXPECT_EQ(
      thimble_plan_new_watched(Recipe("memory = \"least\"\n").handle, 0, go_on, nullptr, &plan),
      THIMBLE_OK);
  thimble_plan_free(plan);
}

TEST(Api, SettingsAreRefusedAsTheyCome) {
  const Recipe recipe;
  EXPECT_EQ(thimble_recipe_set(recipe.handle, "bacth", "1"), THIMBLE_MISTAKE);
  EXPECT_NE(last().find("--batch"), std::string::npos);
  EXPECT_EQ(thimble_recipe_set(recipe.handle, "gradient_accumulation_steps", "4"), THIMBLE_MISTAKE);
  EXPECT_NE(last().find("gradient accumulation is --microbatch N"), std::string::npos) << last();
  EXPECT_EQ(thimble_recipe_read(recipe.handle, "{\"zero_stage\": 3}"), THIMBLE_MISTAKE);
  EXPECT_NE(last().find("--shard state, gradients or weights"), std::string::npos) << last();
  EXPECT_EQ(thimble_recipe_set(recipe.handle, "batch", "many"), THIMBLE_MISTAKE);
  EXPECT_EQ(thimble_recipe_set(recipe.handle, "search-seconds", "-1"), THIMBLE_MISTAKE);
  EXPECT_EQ(thimble_recipe_set(recipe.handle, "search_seconds", "5"), THIMBLE_OK) << last();
  EXPECT_EQ(thimble_recipe_read(recipe.handle, "batch = "), THIMBLE_MISTAKE);
  EXPECT_EQ(thimble_recipe_read(recipe.handle, "{\"batch\": 12}"), THIMBLE_OK) << last();
  thimble_plan* plan = nullptr;
  ASSERT_EQ(thimble_plan_new(recipe.handle, 0, &plan), THIMBLE_OK) << last();
  thimble_tensor field = {};
  ASSERT_EQ(thimble_plan_field(plan, 0, &field), THIMBLE_OK);
  EXPECT_EQ(field.shape[0], 12);
  EXPECT_EQ(thimble_plan_field(plan, 7, &field), THIMBLE_MISTAKE);
  thimble_plan_free(plan);
}

TEST(Api, EveryThreadHasItsOwnSentence) {
  thimble_recipe* recipe = nullptr;
  EXPECT_EQ(thimble_recipe_new("nosuch", &recipe), THIMBLE_MISTAKE);
  std::thread([] { EXPECT_EQ(last(), ""); }).join();
  EXPECT_NE(last().find("nosuch"), std::string::npos);
}

TEST(Api, ThreadsWithRunsOfTheirOwn) {
  std::vector<std::vector<float>> weights(2);
  std::vector<std::thread> threads;
  for (auto& result : weights) {
    threads.emplace_back([&result] {
      Source source;
      OneRun run(Plan("steps = 20"), source.options());
      EXPECT_EQ(thimble_run_train(run.handle, nullptr, nullptr), THIMBLE_OK) << last();
      result = run.weight("classifier.weight");
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(weights[0], weights[1]);
}

}  // namespace
