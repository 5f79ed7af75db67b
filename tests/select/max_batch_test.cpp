// The largest value that a budget has room for, of those that a model takes, by trying every one of them.
#include "select/max_batch.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "base/error.h"
#include "model/layers.h"
#include "small_nets.h"

namespace thimble {
namespace {

// A classifier that refuses all batches but some.
Recipe picky(std::set<int64_t> batches) {
  Recipe recipe;
  recipe.device = "null";
  recipe.planner = "keep_all";
  recipe.model = {.name = "picky", .batch = *batches.begin(), .image = {1, 1, 40}, .classes = 10};
  recipe.model.build = [batches = std::move(batches)](const ModelOptions& options) {
    user_check(batches.contains(options.batch), "not a batch of {}", options.batch);
    Layers net(options);
    const ValueId x = net.build().input("x", {{options.batch, 40}});
    net.model().feeds = {{.value = x, .field = "x"}};
    return net.classify(net.linear("hidden", x, 64, "relu"));
  };
  return recipe;
}

TEST(FindLargest, IsTheLargestOfThoseThatTheModelTakes) {
  for (unsigned seed = 1; seed <= 4; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    std::set<int64_t> batches;  // each twice as much as the one before, at most
    for (int64_t batch = 1; batches.size() < 9;) {
      batches.insert(batch);
      batch += 1 + static_cast<int64_t>(random()) % std::min<int64_t>(batch, 20);
    }
    const Recipe requested = picky(batches);
    const Settings explicit_settings = {{"planner", "keep_all"}};
    const auto machine = Machine::open(requested);
    std::map<int64_t, Bytes> least;  // that has room for it
    for (const int64_t batch : batches) {
      Recipe recipe = requested;
      configure(recipe, {{"batch", batch}});
      TechniqueSelector fit(
          recipe, {{"planner", "keep_all"}, {"batch", batch}, {"microbatch", batch}}, machine);
      Bytes low(0), high(int64_t{1} << 30);
      while (high.count - low.count > 1) {
        const Bytes middle((low.count + high.count) / 2);
        (fit.has_room(middle) ? high : low) = middle;
      }
      least[batch] = high;
    }
    for (const auto& [batch, room] : least) {
      const MaxBatch found = find_max_batch(requested, explicit_settings, "batch", room, machine);
      EXPECT_EQ(found.value, batch) << "in " << room.count;
      EXPECT_EQ(found.recipe.model.batch, batch);
      EXPECT_EQ(found.by_memory, batch != *batches.rbegin());
    }
  }
}

}  // namespace
}  // namespace thimble
