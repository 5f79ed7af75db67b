// A bad value is refused by the same sentence, whichever door it comes through: a flag, a recipe
// as TOML or as JSON, a plan file, a checkpoint.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "../file_support.h"
#include "base/error.h"
#include "pipeline/check_plan_file.h"
#include "recipe/plan_file.h"
#include "recipe/settings.h"
#include "select/choose.h"

namespace thimble {
namespace {

using nlohmann::json;

// The sentence; empty: it went through.
template <class Door>
std::string refusal(Door&& door) {
  try {
    door();
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

Recipe recipe_of(const Settings& settings) {
  Recipe recipe;
  configure(recipe, settings);
  return recipe;
}

// A value as each door has it; empty: it has no way to say it.
struct Wrong {
  std::string typed, toml;
  json recorded;
};

std::vector<Wrong> wrong_values() {
  const double inf = std::numeric_limits<double>::infinity();
  return {{"-1", "-1", -1},
          {"1.5", "1.5", 1.5},
          {"nan", "nan", std::nan("")},
          {"inf", "inf", inf},
          {"-inf", "-inf", -inf},
          {"9223372036854775807", "9223372036854775807", INT64_MAX},
          {"18446744073709551615", "", UINT64_MAX},
          {"xyzzy", "\"xyzzy\"", "xyzzy"},
          {"010", "\"010\"", "010"},
          {"\xc3\xa9\xc3\xa9", "\"\xc3\xa9\xc3\xa9\"", "\xc3\xa9\xc3\xa9"},
          {"", "\"\"", ""},
          {"", "[[1]]", json::array({json::array({1})})},
          {"", "[1, 2]", {1, 2}},
          {"", "[true]", json::array({true})}};
}

void expect_one_sentence(const std::string& model, const std::string& name, const Wrong& wrong,
                         const json& record) {
  std::string key = name;
  std::ranges::replace(key, '-', '_');
  const auto text = [&](const std::string& said) {
    return refusal([&] { recipe_of(parse_settings(said)); });
  };
  const std::string said = refusal([&] { recipe_of({{"model", model}, {name, wrong.recorded}}); });
  if (!wrong.toml.empty()) {
    EXPECT_EQ(text(fmt::format("model = \"{}\"\n{} = {}\n", model, key, wrong.toml)), said);
  }
  if (!wrong.recorded.is_number_float() || std::isfinite(wrong.recorded.get<double>())) {
    EXPECT_EQ(
        text(fmt::format("{{\"model\":\"{}\",\"{}\":{}}}", model, key, wrong.recorded.dump())),
        said);
  }
  if (record.contains(key)) {
    json other = record;
    other[key] = wrong.recorded;
    EXPECT_EQ(refusal([&] { recipe_from_json(other); }), said);
    EXPECT_EQ(refusal([&] { check_record(other, recipe_from_json(record), "there"); }),
              said.empty() ? "" : "there: " + said);
  }
  // A word is a name to fields that want names.
  const bool names = said.find("wants text") != std::string::npos;
  if (!wrong.typed.empty() && !names) {
    EXPECT_EQ(refusal([&] { recipe_of({{"model", model}, {name, wrong.typed}}); }), said);
  }
}

TEST(Doors, RefuseWhatIsNoValueByTheSameSentence) {
  for (const std::string model : {"mlp", "wrn-10-1", "lstm", "gpt", "dynamicconv"}) {
    Recipe usual = recipe_of({{"model", model}});
    const json record = to_json(usual);
    for (const Field& field : fields_of(usual)) {
      if (field.name() == "model" || !field.about().flag) continue;
      for (const Wrong& wrong : wrong_values()) {
        SCOPED_TRACE(fmt::format("{} --{} {}{}", model, field.name(), wrong.typed, wrong.toml));
        expect_one_sentence(model, field.name(), wrong, record);
      }
    }
  }
}

TEST(Doors, ListsMayBeJoinedByCommas) {
  const auto same = [](const std::string& name, const std::string& text, const json& list) {
    const auto said = [&](const json& value) {
      return to_json(recipe_of({{"model", "lstm"}, {name, value}}));
    };
    EXPECT_EQ(said(text), said(list)) << name;
  };
  same("keep", "*relu*,*conv*", {"*relu*", "*conv*"});
  same("lengths", "16,32", {16, 32});
  same("milestones", "1.5,30 steps", {1.5, "30 steps"});
  same("milestones", "3", json::array({3}));
  const auto keep = [](const json& value) {
    return refusal([&] { recipe_of({{"model", "mlp"}, {"keep", value}}); });
  };
  EXPECT_EQ(keep("a,,b"), "--keep wants names or patterns, not ''");
  EXPECT_EQ(keep(json::array()), "");
}

TEST(Doors, QuoteWhatTheyRefuse) {
  const auto said = [](const std::string& name, const json& value) {
    return refusal([&] { recipe_of({{"model", "mlp"}, {name, value}}); });
  };
  EXPECT_EQ(said("lr", std::nan("")), "--lr wants a number from 0 on, 3e+38 at most, not nan");
  EXPECT_EQ(said("memory", std::nan("")), said("memory", "nan"));
  EXPECT_EQ(said("batch", "1.5"), said("batch", 1.5));
  std::string accents;
  for (int i = 0; i < 50; ++i) accents += "\xc3\xa9";
  const std::string cut = said("batch", accents);  // between characters
  EXPECT_TRUE(cut.ends_with("\xc3\xa9...")) << cut;
}

TEST(Doors, SettingsStandInNoTableAndOnce) {
  const auto text = [](const std::string& said) {
    return refusal([&] { recipe_of(parse_settings(said)); });
  };
  for (const std::string said : {"model = \"mlp\"\n[optimizer]\nname = \"adam\"\n",
                                 R"({"model":"mlp","optimizer":{"name":"adam"}})"}) {
    EXPECT_EQ(text(said),
              "recipe 'given as text': 'optimizer' is a table, and settings stand in none; write "
              "them at the top");
  }
  EXPECT_NE(text("model = \"mlp\"\nweight-decay = 1\nweight_decay = 2\n").find("twice"),
            std::string::npos);
  EXPECT_NE(text(R"({"model":"mlp","lr":1,"lr":2})").find("it says 'lr' twice"), std::string::npos);
}

TEST(Doors, RecordsHaveTheirOwnKeysInOneSpelling) {
  const Recipe recipe = recipe_of({{"model", "mlp"}});
  const json good = to_json(recipe);
  const auto both = [&](const std::string& key, const json& value) {
    json other = good;
    other[key] = value;
    const std::string said = refusal([&] { recipe_from_json(other); });
    EXPECT_EQ(refusal([&] { check_record(other, recipe, "there"); }), "there: " + said);
    return said;
  };
  EXPECT_EQ(both("bach", 3), "there is no --bach; the nearest is --batch");
  EXPECT_EQ(both("width", 3),
            "mlp has no --width (dynamicconv and gpt have it); leave --width out");
  EXPECT_EQ(both("weight-decay", 3), "its recipe has a key 'weight-decay'; write 'weight_decay'");
  EXPECT_EQ(both("threads", "x"),
            "--threads wants a whole number from 0 on, 1024 at most, not 'x'");
  // A record may lack what the version that wrote it did not have; one of another model is told of
  // elsewhere.
  json fewer = good;
  fewer.erase("threads");
  EXPECT_EQ(refusal([&] { check_record(fewer, recipe, "there"); }), "");
  fewer["model"] = "lstm";
  EXPECT_EQ(refusal([&] { check_record(fewer, recipe, "there"); }), "");
}

class PlanFiles : public testing::Test {
 protected:
  PlanFiles() {
    auto planned = plan_training(recipe_of({{"model", "mlp"},
                                            {"device", "null"},
                                            {"batch", "7"},
                                            {"hidden", "8"},
                                            {"microbatch", "3"}}));
    save_plan(folder_ / "plan", std::get<PlannedTraining>(planned));
    good_ = json::parse(slurp(folder_ / "plan"));
  }

  // Why a file with this in place of what was saved is refused.
  std::string said(const char* pointer, const json& value) {
    json other = good_;
    other[json::json_pointer(pointer)] = value;
    spill(folder_ / "other", other.dump());
    return refusal([&] {
      const PlanFile file = load_plan(folder_ / "other");
      for (const auto& fault : {find_fault(file), find_fault_on_any_device(file)}) {
        user_check(!fault, "unsound: {}", fault.value_or(""));
      }
    });
  }

  TemporaryFolder folder_;
  json good_;
};

TEST_F(PlanFiles, NameWhatIsWrongWithThem) {
  const std::string where = "'" + folder_ / "other" + "': ";
  const std::string damaged = "'" + folder_ / "other" + "' is damaged: ";
  EXPECT_EQ(said("/rows", 3), "");
  EXPECT_EQ(said("/othres", json::array()),
            damaged + "it has a key 'othres' that is none; the nearest is 'others'");
  EXPECT_EQ(
      said("/plan/arnea_bytes", 3),
      damaged + "its plan has a key 'arnea_bytes' that is none; the nearest is 'arena_bytes'");
  EXPECT_EQ(said("/plan/calls/0/recomptue", true),
            damaged +
                "a call of its plan has a key 'recomptue' that is none; the nearest is "
                "'recompute'");
  EXPECT_EQ(said("/others/0/extra", 1).find(damaged + "one of the others has a key 'extra'"), 0U);
  EXPECT_EQ(said("/plan/arena_bytes", 1.5), damaged + "'arena_bytes' of its plan cannot be 1.5");
  EXPECT_EQ(said("/plan/arena_bytes", UINT64_MAX),
            damaged + "'arena_bytes' of its plan cannot be 18446744073709551615");
  EXPECT_EQ(said("/plan/calls", json::object()), damaged + "'calls' of its plan cannot be {}");
  // It would be node 3, were its upper half lost.
  EXPECT_EQ(said("/plan/calls/3/node", (int64_t{1} << 32) + 3),
            damaged + "'node' of a call of its plan cannot be 4294967299");
  EXPECT_EQ(said("/plan/calls/3/scratch", {1, 2, 3}).find(damaged + "'scratch' of a call"), 0U);
  EXPECT_EQ(said("/recipe/master", true),
            where + "fp32 weights are their own masters; leave --master out");
  EXPECT_EQ(said("/recipe/interconnect", "string").find(where + "--interconnect is nvlink"), 0U);
  EXPECT_EQ(said("/recipe/data", "digit").find(where + "'digit' is not a data set"), 0U);
}

TEST_F(PlanFiles, AreNoLargerThanTheirBudget) {
  EXPECT_NE(said("/recipe/memory", 10).find("more than its --memory 10"), std::string::npos);
  EXPECT_EQ(said("/recipe/memory", 1 << 30), "");
}

TEST_F(PlanFiles, SayNothingTwice) {
  std::string text = slurp(folder_ / "plan");
  const size_t at = text.find("\"rows\":");
  text.insert(at, "\"rows\":1,");
  spill(folder_ / "other", text);
  EXPECT_TRUE(throws_saying<UserError>([&] { load_plan(folder_ / "other"); }, "'rows' twice"));
}

// A plan is checked before it is drawn, whatever device it is for.
TEST_F(PlanFiles, AreCheckedWithoutTheirDevice) {
  json other = good_;
  other["recipe"]["device"] = "cuda";
  spill(folder_ / "other", other.dump());
  EXPECT_EQ(find_fault_on_any_device(load_plan(folder_ / "other")), std::nullopt);
  other["plan"]["calls"][3]["node"] = 1;
  spill(folder_ / "other", other.dump());
  EXPECT_NE(find_fault_on_any_device(load_plan(folder_ / "other")), std::nullopt);
}

}  // namespace
}  // namespace thimble
