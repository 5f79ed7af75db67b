// Generators of the C functions: tokens one by one, a chat's next turn, and what cannot be continued.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "../file_support.h"
#include "thimble/thimble.h"

namespace {

using thimble::TemporaryFolder;

std::string last() { return thimble_last_error(); }

// A run of two steps on a batch of a caller's, in a folder with its checkpoint.
struct TrainedRun {
  explicit TrainedRun(const char* model, const char* settings) {
    thimble_recipe* recipe = nullptr;
    thimble_plan* plan = nullptr;
    thimble_run* run = nullptr;
    thimble_run_options options = {};
    options.size = sizeof(options);
    options.fill = fill;
    const std::string out = path();
    options.out = out.c_str();
    EXPECT_EQ(thimble_recipe_new(model, &recipe), THIMBLE_OK) << last();
    EXPECT_EQ(thimble_recipe_read(recipe, settings), THIMBLE_OK) << last();
    EXPECT_EQ(thimble_plan_new(recipe, 0, &plan), THIMBLE_OK) << last();
    EXPECT_EQ(thimble_run_new(plan, &options, &run), THIMBLE_OK) << last();
    EXPECT_EQ(thimble_run_train(run, nullptr, nullptr), THIMBLE_OK) << last();
    trained_bytes = thimble_plan_bytes(plan);
    thimble_run_free(run);
    thimble_plan_free(plan);
    thimble_recipe_free(recipe);
  }
  std::string path() const { return folder / "run"; }

  static int32_t fill(void*, thimble_batch* batch) {
    for (int32_t f = 0; f < batch->field_count; ++f) {
      const thimble_tensor& field = batch->fields[f];
      for (int64_t i = 0; i < field.bytes; ++i) {
        static_cast<uint8_t*>(field.data)[i] =
            field.dtype == THIMBLE_I32 && i % 4 != 0 ? 0 : static_cast<uint8_t>(i / 4 % 3);
      }
    }
    return 0;
  }
  TemporaryFolder folder;
  int64_t trained_bytes = 0;
};

constexpr const char* kSettings =
    "layers = 2\nheads = 2\nwidth = 16\nvocabulary = 31\nlength = 64\nbatch = 2\nthreads = 1\n"
    "steps = 2\noptimizer = \"adamw\"\nschedule = \"constant\"\n";

struct OneGenerator {
  explicit OneGenerator(const std::string& from, thimble_generator_options options = {}) {
    options.size = sizeof(options);
    EXPECT_EQ(thimble_generator_new(from.c_str(), &options, &handle), THIMBLE_OK) << last();
  }
  ~OneGenerator() { thimble_generator_free(handle); }

  std::vector<int32_t> make(const std::vector<int32_t>& text, int count,
                            const thimble_sampling* sampling = nullptr) const {
    EXPECT_EQ(thimble_generator_begin(handle, text.data(), std::ssize(text), sampling), THIMBLE_OK)
        << last();
    std::vector<int32_t> made;
    for (int i = 0; i < count; ++i) {
      int32_t token = 0;
      EXPECT_EQ(thimble_generator_next(handle, &token), THIMBLE_OK) << last();
      if (token < 0) break;
      made.push_back(token);
    }
    return made;
  }
  thimble_generator* handle = nullptr;
};

TEST(Generator, ContinuesAChatWithoutComputingItAgain) {
  const TrainedRun run("gpt", kSettings);
  thimble_generator_options without = {};
  without.cache = THIMBLE_CACHE_OFF;
  const OneGenerator cached(run.path()), whole(run.path(), without);
  EXPECT_EQ(thimble_generator_vocabulary(cached.handle), 31);
  EXPECT_EQ(thimble_generator_context(cached.handle), 64);
  EXPECT_EQ(thimble_generator_cache_bytes(cached.handle), 2 * 2 * 64 * 16 * 4);
  EXPECT_EQ(thimble_generator_cache_bytes(whole.handle), 0);
  EXPECT_LE(thimble_generator_bytes(cached.handle), run.trained_bytes);
  EXPECT_STREQ(thimble_generator_note(cached.handle), "");

  std::vector<int32_t> text = {3, 1, 4, 1, 5, 9, 2, 6};
  const std::vector<int32_t> first = cached.make(text, 12);
  EXPECT_EQ(first.size(), 12u);
  EXPECT_EQ(whole.make(text, 12), first);
  text.insert(text.end(), first.begin(), first.end());
  text.push_back(7);
  EXPECT_EQ(thimble_generator_held(cached.handle), 8 + 11);
  const int64_t before = thimble_generator_computed(cached.handle);
  EXPECT_EQ(cached.make(text, 1), whole.make(text, 1));
  EXPECT_EQ(thimble_generator_computed(cached.handle) - before, 2);
  thimble_generator_forget(cached.handle);
  EXPECT_EQ(thimble_generator_held(cached.handle), 0);

  thimble_sampling sampling = {};
  sampling.size = sizeof(sampling);
  sampling.temperature = 2;
  sampling.top_k = 20;
  sampling.top_p = 0.9;
  sampling.seed = 5;
  const std::vector<int32_t> drawn = cached.make(text, 20, &sampling);
  EXPECT_EQ(cached.make(text, 20, &sampling), drawn);
  sampling.stop = &drawn[10];
  sampling.stop_count = 1;
  const std::vector<int32_t> stopped = cached.make(text, 20, &sampling);
  const auto end = std::ranges::find(drawn, drawn[10]);
  EXPECT_EQ(stopped, std::vector<int32_t>(drawn.begin(), end));

  // The likeliest token has the largest logit.
  std::vector<float> logits(31);
  ASSERT_EQ(
      thimble_generator_logits(cached.handle, text.data(), std::ssize(text), logits.data(), 31 * 4),
      THIMBLE_OK);
  EXPECT_EQ(std::ranges::max_element(logits) - logits.begin(), cached.make(text, 1)[0]);
}

TEST(Generator, SaysWhatCannotBeContinued) {
  const TrainedRun run("gpt", kSettings);
  const OneGenerator one(run.path());
  const int32_t beyond[] = {1, 31};
  int32_t token = 0;
  EXPECT_EQ(thimble_generator_next(one.handle, &token), THIMBLE_MISTAKE);
  EXPECT_NE(last().find("thimble_generator_begin() first"), std::string::npos);
  EXPECT_EQ(thimble_generator_begin(one.handle, beyond, 2, nullptr), THIMBLE_MISTAKE);
  EXPECT_NE(last().find("token 31 of the prompt is beyond the vocabulary of 31"),
            std::string::npos);
  EXPECT_EQ(thimble_generator_begin(one.handle, beyond, 0, nullptr), THIMBLE_MISTAKE);
  EXPECT_EQ(thimble_generator_begin(one.handle, nullptr, 2, nullptr), THIMBLE_MISTAKE);
  thimble_sampling sampling = {};
  EXPECT_EQ(thimble_generator_begin(one.handle, beyond, 1, &sampling), THIMBLE_MISTAKE);
  EXPECT_NE(last().find("set it to sizeof(thimble_sampling)"), std::string::npos);
  sampling.size = sizeof(sampling);
  sampling.top_p = 2;
  EXPECT_EQ(thimble_generator_begin(one.handle, beyond, 1, &sampling), THIMBLE_MISTAKE);
  EXPECT_NE(last().find("top_p lies between 0 and 1"), std::string::npos);
  float logits[4];
  EXPECT_EQ(thimble_generator_logits(one.handle, beyond, 1, logits, 16), THIMBLE_MISTAKE);

  thimble_generator* none = nullptr;
  EXPECT_EQ(thimble_generator_new("nowhere", nullptr, &none), THIMBLE_MISTAKE);
  EXPECT_EQ(none, nullptr);
  thimble_generator_options options = {};
  options.size = sizeof(options);
  options.settings = "memory = \"10KiB\"";
  EXPECT_EQ(thimble_generator_new(run.path().c_str(), &options, &none), THIMBLE_NO_FIT);
  EXPECT_GT(thimble_last_needed(), 10240);
  const TrainedRun pictures("mlp",
                            "image = [8, 8, 1]\nclasses = 3\nbatch = 2\nthreads = 1\nsteps = 2\n"
                            "schedule = \"constant\"\n");
  EXPECT_EQ(thimble_generator_new(pictures.path().c_str(), nullptr, &none), THIMBLE_MISTAKE);
  EXPECT_NE(last().find("mlp does not go on with a text"), std::string::npos) << last();
  thimble_generator_free(nullptr);
}

}  // namespace
