#include "base/io/json_object.h"

#include <gtest/gtest.h>

#include "../file_support.h"
#include "base/error.h"

namespace thimble {
namespace {

using nlohmann::json;

const std::vector<std::string> kKeys = {"count", "share", "name", "on", "list"};

template <class Read>
void expect_refused(const json& object, Read&& read, const char* sentence) {
  EXPECT_TRUE(
      throws_saying<UserError>([&] { read(JsonObject(object, "its part", kKeys)); }, sentence));
}

TEST(JsonObject, ReadsWhatIsThere) {
  const json object = {
      {"count", 3}, {"share", 0.5}, {"name", "x"}, {"on", true}, {"list", {1, -2}}};
  const JsonObject part(object, "its part", kKeys);
  EXPECT_EQ(part.whole("count"), 3);
  EXPECT_EQ(part.real("share"), 0.5);
  EXPECT_EQ(part.real("count"), 3);
  EXPECT_EQ(part.text("name"), "x");
  EXPECT_TRUE(part.toggle("on"));
  EXPECT_EQ(part.wholes("list"), (std::vector<int64_t>{1, -2}));
}

TEST(JsonObject, RefusesWhatIsNot) {
  const auto count = [](const JsonObject& part) { part.whole("count", {.least = 0, .most = 9}); };
  expect_refused({{"cuont", 3}}, count,
                 "its part has a key 'cuont' that is none; the nearest is 'count'");
  expect_refused(json::array(), count, "its part is no table");
  expect_refused(json::object(), count, "its part does not say 'count'");
  for (const json& value : {json(-1), json(10), json(1.5), json("3"), json(), json(UINT64_MAX),
                            json(true), json(1e300)}) {
    expect_refused({{"count", value}}, count, "'count' of its part cannot be ");
  }
  const auto list = [](const JsonObject& part) { part.wholes("list"); };
  expect_refused({{"list", 3}}, list, "'list' of its part cannot be 3");
  expect_refused({{"list", {1, 1.5}}}, list, "'list' of its part cannot be 1.5");
  expect_refused({{"list", std::string(100, 'x')}}, list,
                 "'list' of its part cannot be what it is");
  expect_refused(
      {{"name", 3}}, [](const JsonObject& part) { part.text("name"); },
      "'name' of its part cannot be 3");
  expect_refused(
      {{"on", 1}}, [](const JsonObject& part) { part.toggle("on"); },
      "'on' of its part cannot be 1");
  expect_refused(
      {{"share", "1"}}, [](const JsonObject& part) { part.real("share"); },
      "'share' of its part cannot be \"1\"");
}

}  // namespace
}  // namespace thimble
