// The list of fields: every one of them through every door.
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "../file_support.h"
#include "base/error.h"
#include "base/field_words.h"
#include "execute/costs.h"
#include "plan/verify/verify_plan.h"
#include "recipe/plan_file.h"
#include "recipe/samples.h"
#include "select/choose.h"
#include "support/sanitized.h"

namespace thimble {
namespace {

using nlohmann::json;

const std::vector<std::string> kModels = {"mlp", "wrn-10-1", "resnet:[1,1,1,1]", "unet", "lstm"};

Recipe recipe_of(const Settings& settings) {
  Recipe recipe;
  configure(recipe, settings);
  return recipe;
}

std::set<std::string> names_for(const std::string& model) {
  Recipe recipe = recipe_of({{"model", model}});
  std::set<std::string> names;
  for_each_field(recipe, [&](const Field& field) {
    if (field.about().flag) names.insert(field.name());
  });
  return names;
}

TEST(Fields, AllHaveSamplesHelpAndAGroup) {
  std::set<std::string> listed;
  for (const ListedField& field : listed_fields()) {
    if (!field.field.about().flag) continue;
    EXPECT_TRUE(listed.insert(field.field.name()).second) << field.field.name() << " twice";
    EXPECT_TRUE(field_samples().contains(field.field.name())) << field.field.name();
    EXPECT_FALSE(field.help.empty()) << field.field.name();
    EXPECT_FALSE(field.field.group().empty()) << field.field.name();
  }
  for (const auto& [name, values] : field_samples()) EXPECT_TRUE(listed.contains(name)) << name;
}

TEST(Fields, TypedThenTomlThenJsonIsTheSameRecipe) {
  const TemporaryFolder folder;
  for (const std::string& model : kModels) {
    const std::set<std::string> names = names_for(model);
    for (const auto& [name, values] : field_samples()) {
      if (!names.contains(name)) continue;
      for (const std::string& value : values) {
        SCOPED_TRACE(fmt::format("{} --{} {}", model, name, value));
        Recipe typed = recipe_of({{"model", model}, {name, value}});
        if (!find_field(fields_of(typed), name)->about().recorded) continue;
        ASSERT_NE(to_json(typed), to_json(recipe_of({{"model", model}})));
        spill(folder / "r.toml", to_toml(settings_of(typed)));
        const Recipe from_toml = recipe_of(read_recipe_file(folder / "r.toml"));
        EXPECT_EQ(to_json(from_toml), to_json(typed));
        const json record = json::parse(to_json(from_toml).dump());
        EXPECT_EQ(to_json(recipe_from_json(record, "a record")), to_json(typed));
      }
    }
  }
}

TEST(Fields, AModelsSettingsMayStandInItsName) {
  const Recipe named = recipe_of({{"model", "lstm:layers=3,hidden=32,length=7"}});
  const Recipe flags =
      recipe_of({{"model", "lstm"}, {"layers", "3"}, {"hidden", "32"}, {"length", "7"}});
  EXPECT_EQ(to_json(named), to_json(flags));
  EXPECT_EQ(to_json(recipe_of({{"model", "resnet:[1,1,1,1]:hidden=16"}})),
            to_json(recipe_of({{"model", "resnet:[1,1,1,1]"}, {"hidden", "16"}})));
  EXPECT_TRUE(throws_saying<UserError>(
      [] {
        recipe_of({{"model", "lstm:depth=3"}});
      },
      "'depth'", "layers"));
}

TEST(Fields, ChoicesBringTheirUsualSettingsAlong) {
  EXPECT_EQ(recipe_of({{"model", "mlp"}, {"optimizer", "adamw"}}).optimizer.weight_decay, 0.01);
  EXPECT_EQ(recipe_of({{"model", "mlp"}, {"optimizer", "adamw"}}).schedule.rate, 1e-3);
  EXPECT_EQ(
      recipe_of({{"model", "mlp"}, {"optimizer", "adamw"}, {"weight-decay", 0}, {"lr", "0.5"}})
          .schedule.rate,
      0.5);
  EXPECT_EQ(recipe_of({{"model", "mlp"}, {"memory", "1MiB"}}).planner, "optimal");
  EXPECT_EQ(recipe_of({{"model", "mlp"}, {"precision", "fp16"}}).optimizer.scaling.kind,
            LossScaling::Kind::dynamic);
}

TEST(Fields, RefuseWhatIsNoValueWithOneSentence) {
  const auto refused = [](const std::string& name, const json& value, const auto&... parts) {
    EXPECT_TRUE(throws_saying<UserError>(
        [&] {
          recipe_of({{"model", "mlp"}, {name, value}});
        },
        "--" + name, parts...));
  };
  for (const char* text :
       {"", "010", "1e6", "-1", " 5", "5 ", "0x10", "1.0", "+3", "99999999999"}) {
    refused("batch", text, "a whole number from 1 on", text);
  }
  for (const json& value : {json(-1), json(0), json(4294967296), json(1.5), json(true)}) {
    refused("batch", value, "a whole number from 1 on");
  }
  refused("classes", "4294967296", "from 2 on");
  refused("layers", 4294967296, "10000 at most");
  refused("seed", "-1", "from 0 on");
  refused("seed", -1, "from 0 on");
  refused("density", "", "above 0, 1 at most");
  refused("epochs", "1e7", "1000000 at most");
  refused("epochs", 0, "above 0");
  refused("lr", "nan", "from 0 on");
  refused("clip-norm", "1e-320");
  refused("memory", "", "is not a size");
  refused("optimizer", "adan", "there is no optimizer 'adan'", "the nearest is 'adam'");
  refused("fold", "perhaps", "on or off");
  refused("image", "8,8", "H,W,C");
  refused("image", json::array({8, 0, 1}), "from 1 on");
  refused("milestones", json::array({3, -1}), "epochs");
  refused("frobnicate", 3, "there is no --frobnicate");
  refused("lable-smoothing", 0.1, "the nearest is --label-smoothing");
  EXPECT_TRUE(throws_saying<UserError>(
      [] {
        recipe_of({{"model", "wrn-10-1"}, {"hidden", "8"}});
      },
      "wrn-10-1 has no --hidden", "mlp", "lstm"));
}

TEST(Fields, WhatWasWrittenDirectlyIsJudgedAsIfTyped) {
  Recipe recipe = recipe_of({{"model", "mlp"}});
  check(recipe);
  recipe.model.batch = -4;
  EXPECT_TRUE(throws_saying<UserError>([&] { check(recipe); }, "--batch", "not -4"));
  recipe.model.batch = 4;
  recipe.on.threads = 5000;
  EXPECT_TRUE(throws_saying<UserError>([&] { plan_training(recipe); }, "--threads", "1024"));
}

TEST(Fields, RecordsWithKeysOfTheirOwnAreRefused) {
  const json good = to_json(recipe_of({{"model", "mlp"}}));
  const auto refused = [](const json& record, const auto&... parts) {
    EXPECT_TRUE(
        throws_saying<UserError>([&] { recipe_from_json(record, "'file'"); }, "'file'", parts...));
  };
  json other = good;
  other["bach"] = 3;
  refused(other, "--bach", "the nearest is --batch");
  other = good;
  other.erase("seed");
  refused(other, "'seed'");
  for (const auto& [key, value] : {std::pair<const char*, json>{"layers", -1},
                                   {"classes", "4294967296"},
                                   {"layers", 4294967296},
                                   {"batch", 0},
                                   {"threads", -1},
                                   {"keep", 7},
                                   {"codec_chosen", "x"}}) {
    other = good;
    other[key] = value;
    refused(other, fmt::format("--{}", std::string(key) == "codec_chosen" ? "codec-chosen" : key));
  }
}

// Names of other programs lead to ours, in every spelling of files and flags.
TEST(Fields, WordsOfTheFieldAreAnsweredWithOurs) {
  const auto refused = [](const std::string& name, const auto&... parts) {
    EXPECT_TRUE(throws_saying<UserError>(
        [&] {
          recipe_of({{"model", "mlp"}, {name, "2"}});
        },
        "there is no --" + name + "; ", parts...));
  };
  refused("gradient-accumulation", "gradient accumulation is --microbatch N");
  refused("gradient_accumulation_steps", "--microbatch N");
  refused("Micro-Batch", "--microbatch N");
  refused("rematerialization", "--memory BYTES");
  refused("activation-checkpointing", "--memory BYTES");
  refused("gradient_checkpointing", "--memory BYTES");
  refused("offload", "no tensor is moved to host memory", "--memory BYTES");
  refused("mixed-precision", "--precision bf16", "--master");
  refused("amp", "--precision bf16");
  refused("fsdp", "--shard state, gradients or weights");
  refused("zero", "ZeRO-1, ZeRO-2 or ZeRO-3 (FSDP)");
  refused("learning_rate", "its name here is --lr");
  refused("num-epochs", "its name here is --epochs");
  refused("batch-size", "its name here is --batch");
  refused("vocab-size", "the nearest is");  // mlp has no --vocabulary
}

// TOML, and JSON as C and Python give it, answer every word with the name that their recipe has.
TEST(Fields, WordsOfTheFieldAreAnsweredInFiles) {
  std::set<std::string_view> answered;
  for (const std::string model : {"mlp", "gpt", "wrn-10-1"}) {
    const std::set<std::string> ours = names_for(model);
    for (const FieldWords& words : all_field_words()) {
      if (!ours.contains(std::string(words.ours))) continue;
      const std::string answer = words.explanation.empty()
                                     ? fmt::format("its name here is --{}", words.ours)
                                     : std::string(words.explanation);
      for (const std::string_view theirs : words.theirs) {
        std::string key(theirs);
        std::ranges::replace(key, '-', '_');
        for (const std::string& text :
             {fmt::format("model = \"{}\"\n{} = 2\n", model, key),
              fmt::format("{{\"model\": \"{}\", \"{}\": 2}}", model, key)}) {
          EXPECT_TRUE(throws_saying<UserError>([&] { recipe_of(parse_settings(text)); },
                                               fmt::format("there is no --{}; {}", theirs, answer)))
              << text;
        }
      }
      answered.insert(words.ours);
    }
  }
  for (const FieldWords& words : all_field_words()) {
    const bool of_commands = words.ours == "largest" || words.ours == "out" ||
                             words.ours == "resume" || words.ours == "weights" ||
                             words.ours == "export-initial";
    EXPECT_TRUE(of_commands || answered.contains(words.ours)) << words.ours;
  }
}

TEST(Fields, WordsOfTheFieldAreNoneOfOurs) {
  std::set<std::string, std::less<>> ours = {"out", "resume", "weights", "export-initial",
                                             "largest"};
  for (const ListedField& listed : listed_fields()) ours.insert(listed.field.name());
  std::set<std::string_view> seen;
  for (const FieldWords& words : all_field_words()) {
    EXPECT_TRUE(ours.contains(words.ours)) << words.ours;
    for (const std::string_view theirs : words.theirs) {
      EXPECT_FALSE(ours.contains(theirs)) << theirs;
      EXPECT_TRUE(seen.insert(theirs).second) << theirs << " is there twice";
      EXPECT_EQ(theirs.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-"), theirs.npos);
    }
  }
}

// The key of a measured step must tell apart steps that take another time.
TEST(Fields, TimedOnesAreInTheNamesOfMeasuredSteps) {
  const Recipe usual = recipe_of({{"model", "mlp"}, {"precision", "bf16"}});
  const auto differs = [&](const std::string& name, const std::string& value) {
    return timed_text(usual) !=
           timed_text(recipe_of({{"model", "mlp"}, {"precision", "bf16"}, {name, value}}));
  };
  EXPECT_TRUE(differs("rounding", "stochastic"));
  EXPECT_TRUE(differs("loss-scale", "dynamic"));
  EXPECT_TRUE(differs("recompute", "*relu*"));
  EXPECT_TRUE(differs("keep", "*relu*"));
  EXPECT_FALSE(differs("lr", "0.2"));
  EXPECT_FALSE(differs("seed", "2"));
  EXPECT_FALSE(differs("weight-decay", "0.1"));
}

// A random recipe that is in order, of a net small enough to be planned at once.
std::optional<Recipe> random_recipe(std::mt19937& random) {
  const std::string model = kModels[random() % kModels.size()];
  Settings settings = {{"model", model}, {"device", "null"}, {"batch", "7"}};
  for (const std::string& name : names_for(model)) {
    const std::vector<std::string>& values = field_samples().at(name);
    if (random() % 6 == 0) settings.try_emplace(name, values[random() % values.size()]);
  }
  for (const auto& [name, value] : {std::pair("layers", "1"), {"hidden", "8"}, {"length", "3"}}) {
    if (names_for(model).contains(name)) settings.try_emplace(name, value);
  }
  if (model != "lstm") {  // which has no images, and they no tokens
    settings.try_emplace("image", "16,16,3");
    for (const char* name : {"tokens", "microbatch-tokens", "lengths"}) settings.erase(name);
  }
  for (const char* unplanned : {"data", "data-dir", "costs", "keep", "recompute", "sparse"}) {
    settings.erase(unplanned);  // they need files, or names of this net
  }
  try {
    Recipe recipe = recipe_of(settings);
    check(recipe);
    return recipe;
  } catch (const UserError&) {
    return {};
  }
}

TEST(Fields, RandomRecipesPlanSaveAndVerify) {
  constexpr int kRecipes = kSanitized ? 15 : 300;
  const TemporaryFolder folder;
  std::mt19937 random(7);
  int done = 0;
  for (int tried = 0; done < kRecipes; ++tried) {
    ASSERT_LT(tried, 20 * kRecipes);
    const std::optional<Recipe> recipe = random_recipe(random);
    if (!recipe) continue;
    SCOPED_TRACE(to_toml(settings_of(*recipe)));
    std::variant<PlannedTraining, Infeasible> planned;
    try {
      planned = plan_training(*recipe);
    } catch (const UserError&) {
      continue;  // does not go together
    }
    if (std::holds_alternative<Infeasible>(planned)) continue;
    const auto& step = std::get<PlannedTraining>(planned);
    std::vector<ShapedPlan> plans;
    for (const auto& variant : step.steps) plans.push_back({variant->shape, variant->plan});
    save_plan(folder / "plan", step.recipe, plans);
    const PlanFile file = load_plan(folder / "plan");
    ASSERT_EQ(to_json(file.recipe), to_json(step.recipe));
    const auto backend = make_backend(file.recipe.device, file.recipe.on);
    ASSERT_EQ(file.plans.size(), step_shapes(file.recipe).size());
    for (size_t i = 0; i < file.plans.size(); ++i) {
      ASSERT_EQ(file.plans[i].shape, step.steps[i]->shape);
      const Graph graph = make_graph(file.recipe, file.plans[i].shape).model.graph;
      ASSERT_EQ(find_fault(graph, gather_costs(graph, *backend), file.plans[i].plan), std::nullopt);
    }
    ++done;
  }
}

TEST(Fields, PlanFilesOfAnotherVersionAreRefused) {
  const TemporaryFolder folder;
  spill(folder / "old", R"({"format":"thimble-plan-6","recipe":{},"plan":{}})");
  EXPECT_TRUE(throws_saying<UserError>([&] { load_plan(folder / "old"); }, "thimble-plan-6",
                                       "make it again"));
  spill(folder / "other", R"({"format":"x"})");
  EXPECT_TRUE(throws_saying<UserError>([&] { load_plan(folder / "other"); }, "not a plan file"));
}

}  // namespace
}  // namespace thimble
