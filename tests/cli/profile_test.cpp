// thimble profile, through the program itself.
#include "base/number/bytes.h"
#include "support/run_thimble.h"

namespace thimble {
namespace {

using Words = std::vector<std::string>;

nlohmann::json techniques_of(const Words& words) {
  const Outcome outcome = thimble_says(Words{"profile", "--json"} + words);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  return outcome.code == 0 ? outcome.json()["techniques"] : nlohmann::json::object();
}

std::vector<std::string> names_in(const nlohmann::json& techniques) {
  std::vector<std::string> names;
  for (const nlohmann::json& row : techniques["rows"]) names.push_back(row["name"]);
  return names;
}

void expect_consistent(const nlohmann::json& techniques) {
  const nlohmann::json& baseline = techniques["baseline"];
  const auto total = baseline["total_bytes"].get<int64_t>();
  EXPECT_EQ(total, baseline["model_bytes"].get<int64_t>() +
                       baseline["optimizer_bytes"].get<int64_t>() +
                       baseline["activation_bytes"].get<int64_t>());
  const nlohmann::json& kept = techniques["rows"][0];
  for (const nlohmann::json& row : techniques["rows"]) {
    const auto arena = row["arena_bytes"].get<double>();
    EXPECT_DOUBLE_EQ(row["ratio_to_baseline"].get<double>(), static_cast<double>(total) / arena);
    EXPECT_DOUBLE_EQ(row["saved_share"].get<double>(),
                     1 - arena / kept["arena_bytes"].get<double>());
    EXPECT_DOUBLE_EQ(row["extra_flops_ratio"].get<double>(),
                     row["flops"].get<double>() / kept["flops"].get<double>() - 1);
    for (const char* key : {"model_bytes", "optimizer_bytes", "activation_bytes"}) {
      EXPECT_GT(row[key].get<int64_t>(), 0) << row["name"];
      EXPECT_LT(row[key].get<double>(), arena) << row["name"];
    }
  }
}

TEST(ProfileTechniques, AreThoseAskedForAloneAndTogether) {
  const Words net = {"wrn-10-1", "--batch", "20", "--optimizer", "sgd", "--device", "null"};
  const Words asked = {"--precision", "bf16", "--microbatch", "5", "--density", "0.3", "--fold"};
  const nlohmann::json techniques =
      techniques_of(net + asked + Words{"--planner", "log_recursive"});
  EXPECT_EQ(names_in(techniques),
            (std::vector<std::string>{"fp32, everything kept", "bf16", "microbatch 5",
                                      "density 0.3, dynamic", "gradients folded into momentum",
                                      "recomputation, log_recursive", "combined"}));
  expect_consistent(techniques);
  // Every row is what `plan` says of the same flags.
  const auto plan = [&](const Words& flags) {
    return thimble_says(Words{"plan", "--json"} + net + flags).json();
  };
  const std::vector<Words> flags = {{},
                                    {"--precision", "bf16"},
                                    {"--microbatch", "5"},
                                    {"--density", "0.3"},
                                    {"--fold"},
                                    {"--planner", "log_recursive"},
                                    asked + Words{"--planner", "log_recursive"}};
  for (size_t i = 0; i < flags.size(); ++i) {
    const nlohmann::json expected = plan(flags[i]);
    const nlohmann::json& row = techniques["rows"][i];
    for (const char* key : {"arena_bytes", "flops", "tier"}) {
      EXPECT_EQ(row[key], expected[key]) << row["name"] << " " << key;
    }
  }
}

TEST(ProfileTechniques, WithNoneAskedForShowSomeOfEveryKind) {
  const nlohmann::json techniques =
      techniques_of({"mlp", "--batch", "200", "--layers", "6", "--device", "null"});
  EXPECT_EQ(names_in(techniques),
            (std::vector<std::string>{"fp32, everything kept", "bf16", "microbatch 20",
                                      "density 0.3, dynamic", "gradients folded into momentum",
                                      "recomputation, at its floor", "8-bit state", "codec int4",
                                      "combined, at its floor"}));
  expect_consistent(techniques);
  const nlohmann::json& rows = techniques["rows"];
  for (const nlohmann::json& row : rows) EXPECT_GE(row["arena_bytes"], rows.back()["arena_bytes"]);
}

TEST(ProfileTechniques, CountWideResNetAsTheLiteratureDoes) {
  const nlohmann::json techniques = techniques_of({"wrn-28-2", "--batch", "100", "--device", "null",
                                                   "--precision", "fp16", "--rounding", "kahan"});
  EXPECT_NEAR(techniques["baseline"]["total_bytes"].get<double>(), 399.0e6, 0.05e6);
  EXPECT_NEAR(techniques["baseline"]["model_bytes"].get<double>(), 5.87e6, 0.005e6);
  EXPECT_NEAR(techniques["baseline"]["optimizer_bytes"].get<double>(), 11.74e6, 0.005e6);
  EXPECT_NEAR(techniques["baseline"]["activation_bytes"].get<double>(), 381.4e6, 0.05e6);
  EXPECT_EQ(names_in(techniques), (std::vector<std::string>{"fp32, everything kept",
                                                            "fp16, kahan rounding", "combined"}));
}

TEST(ProfileTechniques, RecomputeWithinTheBudgetOrAtTheirFloor) {
  const Words net = {"mlp", "--batch", "500", "--layers", "6", "--device", "null"};
  const Outcome least =
      thimble_says(Words{"plan", "--json", "--memory", "least", "--fit", "off"} + net);
  const auto floor = least.json()["arena_bytes"].get<int64_t>();
  const nlohmann::json enough = techniques_of(net + Words{"--memory", "5MiB", "--fit", "off"});
  EXPECT_EQ(enough["rows"][1]["name"], "recomputation in 5.00 MiB");
  EXPECT_LE(enough["rows"][1]["arena_bytes"], 5 << 20);
  // Together with a technique it fits, alone it does not.
  const nlohmann::json tight = techniques_of(
      net + Words{"--precision", "bf16", "--fit", "off", "--memory", std::to_string(floor - 64)});
  EXPECT_EQ(tight["rows"][2]["name"], "recomputation, at its floor");
  EXPECT_EQ(tight["rows"][2]["arena_bytes"], floor);
  EXPECT_LT(tight["rows"][3]["arena_bytes"], floor);
}

// An automatic codec encodes by the budget: it is planned with one, alone as well.
TEST(ProfileTechniques, ChooseCodecsWithinTheBudget) {
  const Words net = {"wrn-10-1", "--batch", "16", "--device", "null"};
  const Words asked = {"--codec", "auto:int4", "--planner", "keep_all"};
  const Outcome kept = thimble_says(Words{"plan", "--json"} + net);
  const auto budget = kept.json()["arena_bytes"].get<int64_t>() / 2;
  const nlohmann::json rows =
      techniques_of(net + asked + Words{"--memory", std::to_string(budget)})["rows"];
  EXPECT_EQ(rows[1]["name"], "codec auto:int4 in " + to_string(Bytes(budget)));
  EXPECT_EQ(rows[1]["tier"], "approximate");
  EXPECT_LE(rows[1]["arena_bytes"], budget);
  // Where the budget is too small, all that helps is encoded.
  const nlohmann::json floor = techniques_of(net + asked + Words{"--memory", "least"})["rows"];
  EXPECT_EQ(floor[1]["name"], "codec auto:int4, at its floor");
  EXPECT_LE(floor[1]["arena_bytes"], rows[1]["arena_bytes"]);
}

TEST(ProfileTechniques, ThatAreRefusedAloneSayWhy) {
  // Clipped gradients can be folded because of the second pass.
  const nlohmann::json techniques =
      techniques_of({"mlp", "--batch", "10", "--optimizer", "sgd", "--device", "null", "--fold",
                     "--clip-norm", "0.5", "--clip-two-pass"});
  std::vector<std::string> refused;
  for (const nlohmann::json& row : techniques["rows"]) {
    if (row.contains("refused")) {
      refused.push_back(row["name"]);
      EXPECT_NE(row["refused"].get<std::string>().find("--clip-two-pass"), std::string::npos)
          << row;
    } else {
      EXPECT_GT(row["arena_bytes"], 0);
    }
  }
  EXPECT_EQ(refused, std::vector<std::string>{"gradients folded into momentum"});
}

TEST(ProfileTechniques, OfTheNullDeviceAreAllThereIs) {
  const Outcome outcome = thimble_says({"profile", "mlp", "--device", "null"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("baseline, on paper"), std::string::npos);
  EXPECT_NE(outcome.out.find("combined"), std::string::npos);
  EXPECT_EQ(outcome.out.find("measured"), std::string::npos);
}

}  // namespace
}  // namespace thimble
