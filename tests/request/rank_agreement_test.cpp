// The settings that ranks must have in common: a rank that has others is named, on every rank alike.
#include "request/rank_agreement.h"

#include <gtest/gtest.h>

#include <functional>

#include "../file_support.h"
#include "base/error.h"
#include "support/runs.h"
#include "support/simulated_ranks.h"
#include "train/check_plans.h"

namespace thimble {
namespace {

// The refusals of three ranks, by what they were given.
std::vector<std::string> said(const std::function<void(Communicator&)>& check) {
  std::vector<std::string> words(3);
  SimulatedRanks(3).run([&](Communicator& ranks) {
    words[static_cast<size_t>(ranks.rank())] = message_of<UserError>([&] { check(ranks); });
  });
  return words;
}

void expect_refused(const std::vector<std::string>& words, std::string_view what) {
  for (const std::string& of_rank : words) {
    EXPECT_EQ(of_rank, words[0]);
    EXPECT_NE(of_rank.find(what), std::string::npos) << of_rank;
  }
}

TEST(Accord, ARankWithOtherTermsIsRefused) {
  const auto with = [](const std::function<void(RunIdentity&)>& change) {
    return said([&](Communicator& ranks) {
      RunIdentity terms = {
          .program = "abc of 1.0",
          .recipe = {{"batch", 32}, {"seed", 1}, {"data_dir", "/a"}},
          .data = {{"set", "mnist"}, {"train_records", 8}, {"train_sha256", "f00"}}};
      if (ranks.rank() == 2) change(terms);
      check_run_identity(ranks, terms);
    });
  };
  EXPECT_EQ(with([](RunIdentity&) {}), std::vector<std::string>(3));
  // Where files lie may differ from machine to machine.
  EXPECT_EQ(with([](RunIdentity& t) { t.recipe["data_dir"] = "/b"; }), std::vector<std::string>(3));
  expect_refused(with([](RunIdentity& t) { t.program = "abd of 1.0"; }),
                 "rank 2 runs abd of 1.0, and rank 0 runs abc of 1.0");
  expect_refused(with([](RunIdentity& t) { t.recipe["batch"] = 48; }),
                 "rank 2 was started with another recipe than rank 0: batch = 48, there 32");
  expect_refused(with([](RunIdentity& t) { t.recipe["seed"] = 2; }), "seed = 2, there 1");
  expect_refused(with([](RunIdentity& t) { t.recipe["more"] = 2; }),
                 "rank 2 was started with another");
  expect_refused(with([](RunIdentity& t) { t.data["train_sha256"] = "f01"; }),
                 "rank 2 reads other data than rank 0: the sha256 of the training records");
}

// A plan is the order in which ranks meet: none may have another, not even of an evaluation alone.
TEST(Accord, ARankWithAnotherPlanIsRefused) {
  const auto plans = [](const char* policy) {
    Recipe recipe;
    recipe.model = mlp_run().model;
    recipe.planner = policy;
    return std::move(std::get<PlannedTraining>(plan_training(recipe)).steps);
  };
  const Steps usual = plans("keep_all"), other = plans("sqrt_segments");
  const auto words = said(
      [&](Communicator& ranks) { check_plans(ranks, usual, ranks.rank() == 1 ? other : usual); });
  expect_refused(words, "rank 1 plans other addresses than rank 0");
  EXPECT_EQ(said([&](Communicator& ranks) { check_plans(ranks, usual, other); }),
            std::vector<std::string>(3));
}

}  // namespace
}  // namespace thimble
