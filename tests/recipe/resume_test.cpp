// A run that goes on: every field that matters for bits must be what it was, any other may change.
#include <gtest/gtest.h>

#include <set>

#include "../file_support.h"
#include "base/error.h"
#include "data/dataset.h"
#include "recipe/samples.h"
#include "select/choose.h"
#include "train/trainer.h"
#include "weights/checkpoint.h"

namespace thimble {
namespace {

// On the digits. Fields that are idle elsewhere have an effect here.
Settings begun() {
  return {{"model", "mlp"},   {"hidden", "16"},          {"batch", "16"},
          {"steps", "2"},     {"precision", "fp16"},     {"density", "0.5"},
          {"augment", true},  {"schedule", "step"},      {"warmup", "1 steps"},
          {"no-eval", true},  {"costs", "modelled"},     {"threads", "1"},
          {"image", "8,8,1"}, {"optimizer", "nesterov"}, {"codec", "int8"}};
}

void run(const Settings& settings, const TrainOptions& options) {
  Recipe recipe;
  configure(recipe, settings);
  const auto digits = open_dataset("digits");
  const Feeder feeder(*digits, {.seed = recipe.seed});
  auto planned = plan_training(recipe);
  Trainer trainer(std::get<PlannedTraining>(planned), feeder, options);
  if (!options.resume) trainer.run({});
}

TEST(Resuming, RefusesWhatMattersForBitsAndNothingElse) {
  const TemporaryFolder folder;
  const TrainOptions options = {.out = folder / "run"};
  run(begun(), options);
  const TrainOptions further = {.out = folder / "run", .resume = true};
  run(begun(), further);

  Recipe recipe;
  configure(recipe, begun());
  int refused = 0, accepted = 0;
  for (const Field& field : fields_of(recipe)) {
    // Another device or file may not be there; the digits decide about images and classes.
    const std::set<std::string> left_out = {"device", "costs", "image", "classes"};
    if (!field.about().flag || left_out.contains(field.name())) continue;
    for (const std::string& value : field_samples().at(field.name())) {
      Settings changed = begun();
      changed[field.name()] = value;
      Recipe other;
      configure(other, changed);
      if (to_json(other) == to_json(recipe)) continue;
      if (other.memory == kAutomaticMemory) continue;  // bytes that a command finds out
      SCOPED_TRACE(fmt::format("--{} {}", field.name(), value));
      try {
        plan_training(other);
      } catch (const UserError&) {
        continue;  // does not go with the rest
      }
      if (field.has_effect_on(affects::numerics)) {
        ++refused;
        EXPECT_THROW(run(changed, further), UserError);
      } else {
        ++accepted;
        EXPECT_NO_THROW(run(changed, further));
      }
    }
  }
  EXPECT_GE(refused, 30);
  EXPECT_GE(accepted, 10);
}

TEST(Resuming, SaysWhichFieldThenAndNow) {
  const TemporaryFolder folder;
  run(begun(), {.out = folder / "run"});
  for (const auto& [name, then, now] : {std::tuple("loss-scale-interval", "16384", "10"),
                                        {"loss-scale-growth", "2", "4"},
                                        {"loss-scale-backoff", "0.5", "0.25"},
                                        {"loss-scale-floor", "0.0001", "0.001"}}) {
    Settings changed = begun();
    changed[name] = now;
    EXPECT_TRUE(throws_saying<UserError>(
        [&] { run(changed, {.out = folder / "run", .resume = true}); }, then, now));
  }
}

TEST(Resuming, WhatTheSavingVersionDidNotKnowIsAsUsual) {
  const TemporaryFolder folder;
  run(begun(), {.out = folder / "run"});
  const std::string state = latest_checkpoint(folder / "run").value() + "/state.json";
  nlohmann::json record = nlohmann::json::parse(slurp(state));
  ASSERT_EQ(record["recipe"].erase("crop_pad"), 1U);
  spill(state, record.dump());

  const TrainOptions further = {.out = folder / "run", .resume = true};
  EXPECT_NO_THROW(run(begun(), further));
  Settings changed = begun();
  changed["crop-pad"] = "2";
  EXPECT_TRUE(
      throws_saying<UserError>([&] { run(changed, further); }, "crop_pad = (nothing)", "2"));
}

}  // namespace
}  // namespace thimble
