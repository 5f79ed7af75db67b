// NF4 with double quantisation beside what bitsandbytes 0.50 makes of the same numbers: digests of its
// codes, scales and decoded numbers.
#include "base/nf4.h"

#include <gtest/gtest.h>

#include <bit>
#include <string>

#include "base/io/sha256.h"

namespace thimble {
namespace {

template <class T>
std::string digest(std::span<const T> numbers) {
  Sha256 hash;
  hash.update(std::as_bytes(numbers));
  return hash.hex();
}

// Cubes of a congruential generator's numbers, of another size in every block.
std::vector<float> numbers_to_code(int64_t count) {
  std::vector<float> numbers;
  uint32_t state = 12345;
  for (int64_t i = 0; i < count; ++i) {
    state = state * 1664525u + 1013904223u;
    const float u = static_cast<float>(state >> 8) * 0x1p-24F - 0.5F;
    const float cube = u * u * u;
    numbers.push_back(cube * (1.0F / static_cast<float>(1 << (i / kNf4Block % 5))));
  }
  return numbers;
}

struct Expected {
  int64_t count;
  std::string codes, absmax, nested;
  uint32_t offset;
  std::string decoded;
};

const Expected kExpected[] = {
    {20480, "81d3f35515ff60ad8057f4ce5a5d2122ca8f93f2738cb34e04bc849155cc4d19",
     "786c31e955879e2aaeb88a2702dcbbab5606fa65ebac21949b1fb8e65f554c98",
     "960e03ff160086ad226ac1b6d2608b8d07db5b6c0026b94acf7c37398ec6ce9b", 0x3d3dccc5u,
     "63d94c8ffdfb155037ee7ad04d558f42dad9636d7897042089298bfdb23051bd"},
    {4810, "45bdf4aeac7baa40d5c1f38b7ca8848200a47bf2d3fbe7e06d5787470a38310f",
     "4f5121be2d5b6d22a73b0db09cab7a2cd451d7cf0100eafcd7f77769f217feb1",
     "23261a146cfbfba352b97b27de479051cc565080fb45fb65434d4326eb7af326", 0x3d40ad2eu,
     "226a6d196fe98c1f676a3c276dcc76093bf480ac5af33bbc292493c4375467dd"},
    {165, "8dc523c019161600e3738b85d4588246259766080e15d1e98282603823f0dcc3",
     "f6cb05bafac878706720ad895e1544df662c67116060329aee82abd1ec55066e",
     "443d7a8b26d298fc87925123c598c634cf44ef6d2979262282766adf6a16cf7c", 0x3d91f651u,
     "59bc45456be6016089262a0ff60645b0cca0624389f12114a7f99af7ac38a973"},
};

TEST(Nf4, IsToTheBitWhatBitsandbytesMakes) {
  for (const Expected& expected : kExpected) {
    SCOPED_TRACE(expected.count);
    const std::vector<float> numbers = numbers_to_code(expected.count);
    std::vector<uint8_t> codes(static_cast<size_t>(nf4_code_bytes(expected.count)));
    Nf4Coder coder(expected.count);
    for (size_t begin = 0; begin < numbers.size(); begin += 1024) {
      const size_t some = std::min<size_t>(1024, numbers.size() - begin);
      coder.add(std::span(numbers).subspan(begin, some),
                std::span(codes).subspan(begin / 2, (some + 1) / 2));
    }
    const Nf4Coder::Scales scales = coder.finish();
    EXPECT_EQ(digest(std::span<const uint8_t>(codes)), expected.codes);
    EXPECT_EQ(digest(std::span<const uint8_t>(scales.absmax)), expected.absmax);
    EXPECT_EQ(digest(std::span<const float>(scales.nested)), expected.nested);
    EXPECT_EQ(std::bit_cast<uint32_t>(scales.offset), expected.offset);
    std::vector<float> decoded(numbers.size());
    nf4_decode({codes.data(), scales.absmax.data(), scales.nested.data(), scales.offset}, 0,
               expected.count, decoded.data());
    EXPECT_EQ(digest(std::span<const float>(decoded)), expected.decoded);
  }
}

TEST(Nf4, ScalesAreRoundedToTheUsualMap) {
  EXPECT_EQ(digest(std::span<const float>(nf4_scale_map())),
            "e732639a65f497b4ad684bb166a4467708255edd5207757de8b8f0c7e1fda89c");
}

TEST(Nf4, TakesHalfAByteANumberAndItsScales) {
  constexpr int64_t kNumbers = 1536 * 576;
  EXPECT_EQ(nf4_code_bytes(kNumbers) + nf4_blocks(kNumbers) + 4 * nf4_nested(kNumbers) + 4,
            442368 + 13824 + 4 * 54 + 4);
}

}  // namespace
}  // namespace thimble
