#include "base/number/bytes.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace thimble {
namespace {

TEST(Bytes, ParsesTheSpellingsPeopleUse) {
  const std::pair<const char*, int64_t> cases[] = {
      {"1", 1},
      {"812B", 812},
      {"812 bytes", 812},
      {"64MiB", 64LL << 20},
      {" 64 MiB ", 64LL << 20},
      {"1KiB", 1024},
      {"1kB", 1000},
      {"6.5MB", 6'500'000},
      {"1.5GiB", 3LL << 29},
      {"2TiB", 2LL << 40},
      {"3GB", 3'000'000'000},
      {"0.5KiB", 512},
      {"8G", 8LL << 30},
      {"100M", 100LL << 20},
      {"1073741824", 1LL << 30},
  };
  for (const auto& [text, bytes] : cases) EXPECT_EQ(parse_bytes(text).count, bytes) << text;
}

TEST(Bytes, RejectsWhatIsNoSize) {
  for (const char* text : {"", " ", "MiB", "-1", "-64MiB", "0", "0.2B", "64 Mib", "64MiBs", "6,5MB",
                           "nan", "inf", "1e3", "64 64", "0x40", "99999999999TiB", "+5"}) {
    EXPECT_THROW(parse_bytes(text), UserError) << text;
  }
}

TEST(Bytes, ErrorQuotesTheTextAndShowsAnExample) {
  try {
    parse_bytes("64 parsecs");
    FAIL();
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("'64 parsecs'"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("64MiB"), std::string::npos) << error.what();
  }
}

TEST(Bytes, PrintsThreeFigures) {
  const std::pair<int64_t, const char*> cases[] = {
      {0, "0 B"},
      {812, "812 B"},
      {1023, "1023 B"},
      {1024, "1.00 KiB"},
      {6'794'772, "6.48 MiB"},
      {64LL << 20, "64.0 MiB"},
      {700LL << 30, "700 GiB"},
      {5LL << 40, "5.00 TiB"},
  };
  for (const auto& [bytes, text] : cases) EXPECT_EQ(to_string(Bytes(bytes)), text);
}

TEST(Bytes, AlignsUp) {
  EXPECT_EQ(align_up(Bytes(0)).count, 0);
  EXPECT_EQ(align_up(Bytes(1)).count, 64);
  EXPECT_EQ(align_up(Bytes(64)).count, 64);
  EXPECT_EQ(align_up(Bytes(65), 128).count, 128);
}

TEST(Bytes, AddsAndCompares) {
  EXPECT_EQ(Bytes(3) + Bytes(4), Bytes(7));
  EXPECT_EQ(Bytes(3) - Bytes(4), Bytes(-1));
  EXPECT_EQ(Bytes(3) * 5, Bytes(15));
  EXPECT_LT(Bytes(3), Bytes(4));
}

}  // namespace
}  // namespace thimble
