// The page of a report: self-contained, and its numbers those of the plan.
#include "report/page.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "report/page_data.h"
#include "select/choose.h"
#include "survey/report_files.h"

namespace thimble {
namespace {

std::vector<uint8_t> decoded(const std::string& base64) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::vector<uint8_t> bytes;
  unsigned word = 0;
  int bits = 0;
  for (const char c : base64) {
    if (c == '=') break;
    word = word << 6 | static_cast<unsigned>(kDigits.find(c));
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    bytes.push_back(static_cast<uint8_t>(word >> bits));
  }
  return bytes;
}

template <class T>
std::vector<T> unpacked(const nlohmann::json& packed) {
  const std::vector<uint8_t> bytes = decoded(packed.at("data").get<std::string>());
  std::vector<T> numbers(bytes.size() / sizeof(T));
  std::memcpy(numbers.data(), bytes.data(), numbers.size() * sizeof(T));
  return numbers;
}

nlohmann::json data_in(const std::string& page) {
  const std::string begin = "<script id=\"data\" type=\"application/json\">";
  const size_t at = page.find(begin) + begin.size();
  return nlohmann::json::parse(page.substr(at, page.find("</script>", at) - at));
}

PlanFile plan_of(const std::string& model, const std::string& planner) {
  Recipe recipe;
  recipe.model = {.name = model, .batch = 8};
  recipe.device = "null";
  recipe.planner = planner;
  const auto planned = std::get<PlannedTraining>(plan_training(recipe));
  return {planned.recipe, {{planned.full().shape, planned.plan()}}};
}

TEST(Page, FetchesNothing) {
  const PlanFile file = plan_of("mlp", "sqrt_segments");
  const std::string page = make_report({.plan = file}).page;
  for (const char* outside : {"http://", "https://", "src=", "href", "@import", "url("}) {
    EXPECT_EQ(page.find(outside), std::string::npos) << outside;
  }
  EXPECT_EQ(page.find("<!-- "), std::string::npos);  // all that the template asks for is there
  EXPECT_NE(page.find("</html>"), std::string::npos);
}

TEST(Page, HoldsThePlansBytes) {
  for (const char* planner : {"keep_all", "sqrt_segments"}) {
    const PlanFile file = plan_of("wrn-10-1", planner);
    const Plan& plan = file.plans.front().plan;
    const nlohmann::json data = data_in(make_report({.plan = file, .frontier = false}).page);
    const auto size = unpacked<uint32_t>(data["stays"]["size"]);
    const auto at = unpacked<uint32_t>(data["stays"]["at"]);
    const auto first = unpacked<uint32_t>(data["stays"]["first"]);
    const auto last = unpacked<uint32_t>(data["stays"]["last"]);
    const auto role = unpacked<uint8_t>(data["stays"]["role"]);
    const int64_t unit = data["unit"];
    std::array<Bytes, kRoles> at_peak{};
    int64_t arena = 0;
    for (size_t i = 0; i < size.size(); ++i) {
      arena = std::max(arena, unit * (int64_t{at[i]} + size[i]));
      if (first[i] > data["peak_call"] || last[i] < data["peak_call"]) continue;
      at_peak[role[i]] += Bytes(unit * size[i]);
    }
    EXPECT_EQ(at_peak, plan.peak_by_role);
    EXPECT_EQ(arena, plan.arena.count);
    EXPECT_EQ(data["arena"], plan.arena.count);
    EXPECT_EQ(unpacked<uint32_t>(data["calls"]["node"]).size(), plan.calls.size());
    // Times of calls add up to the step's.
    double sum = 0;
    for (const float ms : unpacked<float>(data["calls"]["planned_ms"])) sum += ms;
    EXPECT_NEAR(sum, 1e3 * plan.predicted_seconds, 1e-3 * sum);  // single precision
    EXPECT_EQ(data["values"]["names"].size(), unpacked<uint32_t>(data["values"]["reason"]).size());
  }
}

TEST(Page, ShowsTheFrontierUnlessAskedNotTo) {
  const PlanFile file = plan_of("mlp", "keep_all");
  const nlohmann::json with = data_in(make_report({.plan = file}).page);
  EXPECT_EQ(with["frontier"]["chosen"]["arena"], file.plans.front().plan.arena.count);
  EXPECT_GT(with["frontier"]["points"].size(), 17u);
  EXPECT_FALSE(data_in(make_report({.plan = file, .frontier = false}).page).contains("frontier"));
}

// Whatever is in the data, it neither ends the script nor starts an element.
TEST(Page, KeepsHostileTextInItsPlace) {
  const std::string hostile = "</script><script>alert(1)</script><!--";
  const std::string page = make_page("compare", hostile, {{"rows", {{hostile}}}});
  EXPECT_EQ(page.find("<script>alert"), std::string::npos);
  EXPECT_EQ(data_in(page)["rows"][0][0], hostile);
}

TEST(Page, ArraysAreLittleEndianInBase64) {
  EXPECT_EQ(packed_array(std::vector<uint8_t>{'M', 'a', 'n'})["data"], "TWFu");
  EXPECT_EQ(packed_array(std::vector<uint8_t>{'M', 'a'})["data"], "TWE=");
  EXPECT_EQ(packed_array(std::vector<uint8_t>{'M'})["data"], "TQ==");
  EXPECT_EQ(packed_array(std::vector<uint32_t>{1, 0x01020304})["data"], "AQAAAAQDAgE=");
  EXPECT_EQ(packed_array(std::vector<float>{})["data"], "");
}

TEST(Pictures, HaveTicksAndTheFrontierAsALine) {
  const PlanFile file = plan_of("mlp", "sqrt_segments");
  const ReportFiles report = make_report({.plan = file});
  ASSERT_EQ(report.pictures.size(), 3u);
  for (const DrawnPicture& picture : report.pictures) {
    EXPECT_EQ(picture.svg.find("<svg "), 0u) << picture.name;
    EXPECT_NE(picture.svg.find("iB</text>"), std::string::npos) << picture.name;
    EXPECT_EQ(picture.svg.find("nan"), std::string::npos) << picture.name;
  }
  EXPECT_NE(report.pictures[0].svg.find("<polygon "), std::string::npos);
  EXPECT_NE(report.pictures[2].svg.find("<polyline "), std::string::npos);
  EXPECT_NE(report.pictures[2].svg.find("this plan"), std::string::npos);
}

}  // namespace
}  // namespace thimble
