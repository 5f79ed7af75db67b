#include "base/io/crc32c.h"

#include <gtest/gtest.h>

#include <string>

namespace thimble {
namespace {

// RFC 3720, B.4, and the check value of the catalogues.
TEST(Crc32c, OfKnownBytes) {
  EXPECT_EQ(crc32c(""), 0u);
  EXPECT_EQ(crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62a8ab43u);
  std::string ascending;
  for (int i = 0; i < 32; ++i) ascending += static_cast<char>(i);
  EXPECT_EQ(crc32c(ascending), 0x46dd794eu);
}

}  // namespace
}  // namespace thimble
