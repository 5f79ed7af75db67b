// Techniques together: every pair trains, in the arena that was planned, or is refused in a
// sentence that says what to choose instead; and where it trains, recomputation changes no bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "matrix/techniques.h"
#include "plan/policy.h"

namespace thimble {
namespace {

Words operator+(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

void expect_trained(const Attempt& attempt) {
  EXPECT_EQ(attempt.measured, attempt.planned);
  ASSERT_FALSE(attempt.losses.empty());
  for (const double loss : attempt.losses) EXPECT_TRUE(std::isfinite(loss));
  EXPECT_EQ(attempt.skipped, 0) << "steps that change nothing prove nothing";
}

// "...; choose --precision bf16, or leave --fold out"
bool says_what_to_choose(const std::string& sentence) {
  const size_t advice = sentence.rfind(';');
  return advice != std::string::npos && sentence.find("--", advice) != std::string::npos;
}

const char* const kLeast = "--memory=least";

// Returns whether it was trained, with everything kept and once more as `recomputation` says.
bool runs_or_says_why_not(const Net& net, const Words& flags, const std::string& recomputation) {
  const Attempt kept = train_with(net, flags);
  if (!kept.refused.empty()) {
    EXPECT_TRUE(says_what_to_choose(kept.refused)) << kept.refused;
    return false;
  }
  expect_trained(kept);
  const Attempt least = train_with(net, flags + Words{recomputation});
  EXPECT_EQ(least.refused, "");
  if (recomputation == kLeast) {
    EXPECT_LE(least.planned, kept.planned);
  }
  expect_trained(least);
  EXPECT_EQ(least.losses, kept.losses);
  EXPECT_TRUE(least.state == kept.state) << "recomputation changed bits";
  return true;
}

class Techniques : public testing::TestWithParam<Technique> {};

TEST_P(Techniques, GoWithEveryPolicy) {
  const Technique& technique = GetParam();
  ASSERT_TRUE(runs_or_says_why_not(one_block(), technique.flags, kLeast)) << "refused alone";
  const Attempt kept = train_with(one_block(), technique.flags);
  for (const Policy* policy : all_policies()) {
    SCOPED_TRACE(policy->name);
    const Attempt other =
        train_with(one_block(), technique.flags + Words{"--planner=" + std::string(policy->name)});
    EXPECT_EQ(other.refused, "");
    expect_trained(other);
    EXPECT_TRUE(other.state == kept.state) << "the policy changed bits";
  }
}

TEST_P(Techniques, GoWithEachOtherOrSayWhatToChoose) {
  const std::vector<Technique>& all = all_techniques();
  const Technique& first = GetParam();
  const auto is_first = [&](const Technique& other) { return other.name == first.name; };
  const size_t at =
      static_cast<size_t>(std::find_if(all.begin(), all.end(), is_first) - all.begin());
  // With the half of them that follows, round and round: every pair once, every test alike long.
  const size_t half = all.size() / 2;
  for (size_t i = 1; i <= half; ++i) {
    if (2 * i == all.size() && at >= half) continue;  // the one opposite has been there
    const Technique& second = all[(at + i) % all.size()];
    if (!can_be_typed_together(first, second)) continue;
    SCOPED_TRACE(first.name + " and " + second.name);
    const bool trained = runs_or_says_why_not(one_block(), first.flags + second.flags, kLeast);
    EXPECT_EQ(trained, !are_refused(first.name, second.name));
  }
}

TEST_P(Techniques, GoWithEveryNetOrSayWhatToChoose) {
  for (const Net& net : other_nets()) {
    SCOPED_TRACE(net.name);
    const Technique& technique = GetParam();
    const bool trained = runs_or_says_why_not(net, technique.flags, "--planner=log_recursive");
    EXPECT_EQ(trained, !are_refused(net.name, technique.name));
  }
}

INSTANTIATE_TEST_SUITE_P(All, Techniques, testing::ValuesIn(all_techniques()),
                         [](const auto& made) { return made.param.name; });

TEST(RefusedPairs, AreOfWhatThereIs) {
  std::vector<Technique> all = all_techniques();
  for (const Net& net : other_nets()) all.push_back({net.name, {}});
  const auto find = [&](const std::string& name) {
    return std::find_if(all.begin(), all.end(), [&](const auto& t) { return t.name == name; });
  };
  for (const auto& [a, b] : refused_pairs()) {
    SCOPED_TRACE(a + " and " + b);
    const auto first = find(a), second = find(b);
    ASSERT_TRUE(first != all.end() && second != all.end());
    EXPECT_TRUE(can_be_typed_together(*first, *second));
  }
}

class Triples : public testing::TestWithParam<uint32_t> {};

TEST_P(Triples, RunOrSayWhatToChoose) {
  std::mt19937 random(GetParam());
  const std::vector<Technique>& all = all_techniques();
  int trained = 0;
  for (int found = 0; found < 12;) {
    const Technique &a = all[random() % all.size()], &b = all[random() % all.size()],
                    &c = all[random() % all.size()];
    if (a.name == b.name || a.name == c.name || b.name == c.name) continue;
    if (!can_be_typed_together(a, b) || !can_be_typed_together(a, c) ||
        !can_be_typed_together(b, c)) {
      continue;
    }
    ++found;
    SCOPED_TRACE(a.name + ", " + b.name + " and " + c.name);
    trained += runs_or_says_why_not(one_block(), a.flags + b.flags + c.flags, kLeast) ? 1 : 0;
  }
  EXPECT_GT(trained, 0);
}

INSTANTIATE_TEST_SUITE_P(Random, Triples, testing::Range(1u, 5u));

}  // namespace
}  // namespace thimble
