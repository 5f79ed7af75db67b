#include "base/io/json.h"

#include <gtest/gtest.h>

#include "../file_support.h"
#include "base/error.h"

namespace thimble {
namespace {

std::string nested(std::string_view open, std::string_view close, int depth) {
  std::string text;
  for (int i = 0; i < depth; ++i) text += open;
  text += "1";
  for (int i = 0; i < depth; ++i) text += close;
  return text;
}

TEST(Json, DepthIsBoundedBeforeAnythingIsBuilt) {
  EXPECT_NO_THROW(parse_json(nested("[", "]", kDeepestJson)));
  EXPECT_NO_THROW(parse_json(nested("{\"a\":", "}", kDeepestJson)));
  for (const int depth : {kDeepestJson + 1, 100'000, 1'000'000}) {
    EXPECT_TRUE(throws_saying<UserError>([&] { parse_json(nested("[", "]", depth)); }, "100 deep"));
    EXPECT_TRUE(
        throws_saying<UserError>([&] { parse_json(nested("{\"a\":", "}", depth)); }, "100 deep"));
    // Brackets inside of texts are text, and a quote behind a backslash ends none.
    EXPECT_EQ(parse_json('"' + std::string(static_cast<size_t>(depth), '[') + '"').size(), 1u);
    EXPECT_THROW(parse_json("[\"\\\"\"," + nested("[", "]", depth) + "]"), UserError);
    EXPECT_THROW(parse_json("[\"\\\\\"," + nested("[", "]", depth) + "]"), UserError);
  }
}

TEST(Json, AKeyStandsOnce) {
  EXPECT_NO_THROW(parse_json(R"([{"a":{"a":1},"b":[{"a":1},{"a":2}]},{"a":3}])"));
  for (const char* text : {R"({"a":1,"a":1})", R"([{"b":{},"a":[{"a":1}],"a":2}])"}) {
    EXPECT_TRUE(throws_saying<UserError>([&] { parse_json(text); }, "it says 'a' twice"));
  }
}

TEST(Json, FaultsAreSentences) {
  for (const char* text : {"", "{", "[1,]", "{\"a\":1e999}", "\"\xff\"", "nul"}) {
    EXPECT_THROW(parse_json(text), UserError) << text;
  }
  EXPECT_TRUE(throws_saying<UserError>([] { parse_json("[1,]"); }, "near byte 4"));
  const TemporaryFolder folder;
  spill(folder / "f", "[1,]");
  EXPECT_TRUE(throws_saying<UserError>([&] { read_json(folder / "f", "a plan file"); },
                                       folder / "f", "is not a plan file"));
}

// A file of holes: as large as it likes at no cost.
TEST(Json, SizeIsBoundedBeforeAnythingIsRead) {
  const TemporaryFolder folder;
  spill(folder / "f", "");
  std::filesystem::resize_file(folder / "f", 10'000'000'000);
  EXPECT_TRUE(throws_saying<UserError>([&] { read_json(folder / "f", "a plan file"); },
                                       "has 10000000000 bytes, and a plan file can have 67108864"));
}

TEST(Json, TextOfAnyBytes) { EXPECT_EQ(json_text({{"a", "x\xff"}}), "{\"a\":\"x\xef\xbf\xbd\"}"); }

}  // namespace
}  // namespace thimble
