#include "base/number/philox.h"

#include <gtest/gtest.h>

namespace thimble {
namespace {

// Known answers of Random123's philox4x32-10.
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}),
            (PhiloxCounter{0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u}));
  EXPECT_EQ(philox({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}),
            (PhiloxCounter{0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu}));
  EXPECT_EQ(
      philox({0x243f6a88u, 0x85a308d3u, 0x13198a2eu, 0x03707344u}, {0xa4093822u, 0x299f31d0u}),
      (PhiloxCounter{0xd16cfe09u, 0x94fdccebu, 0x5001e420u, 0x24126ea1u}));
}

TEST(Philox, KeyHoldsTheWholeSeed) {
  EXPECT_EQ(philox_key(0x0123456789abcdefu), (PhiloxKey{0x89abcdefu, 0x01234567u}));
}

TEST(Philox, UniformStaysBelowOne) {
  EXPECT_EQ(uniform_from(0), 0.0f);
  EXPECT_EQ(uniform_from(~0u), 1.0f - 0x1p-24f);
  static_assert(uniform_from(0x80000000u) == 0.5f);
}

TEST(StableHash, IsFnv1a) {
  static_assert(stable_hash("") == 0xcbf29ce484222325u);
  static_assert(stable_hash("a") == 0xaf63dc4c8601ec8cu);
  static_assert(stable_hash("foobar") == 0x85944171f73967e8u);
}

}  // namespace
}  // namespace thimble
