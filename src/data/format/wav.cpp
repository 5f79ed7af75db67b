#include "data/format/wav.h"

#include <cstring>
#include <string_view>

#include "base/error.h"
#include "base/io/file.h"

namespace thimble {
namespace {

constexpr Bytes kMost(64 << 20);

template <class T>
T number_at(std::string_view bytes, size_t at) {
  T value{};
  std::memcpy(&value, bytes.data() + at, sizeof(T));
  return value;
}

}  // namespace

std::vector<int16_t> read_wav(const std::string& path, int rate) {
  const std::string all = read_text(path, "a recording", kMost);
  const std::string_view bytes = all;
  user_check(bytes.size() >= 12 && bytes.starts_with("RIFF") && bytes.substr(8, 4) == "WAVE",
             "'{}' is no .wav file; get a fresh copy of it", path);
  bool described = false;
  // Chunks: four letters, a size, as many bytes, and one more where that is odd.
  for (size_t at = 12; at + 8 <= bytes.size();) {
    const std::string_view name = bytes.substr(at, 4);
    const size_t size = number_at<uint32_t>(bytes, at + 4);
    at += 8;
    user_check(
        size <= bytes.size() - at,
        "'{}' is truncated: it has {} bytes of the {} that its '{}' should have; get a fresh "
        "copy of it",
        path, bytes.size() - at, size, name);
    if (name == "fmt " && size >= 16) {
      const bool plain = number_at<uint16_t>(bytes, at) == 1 &&
                         number_at<uint16_t>(bytes, at + 2) == 1 &&
                         number_at<uint16_t>(bytes, at + 14) == 16;
      const auto found = number_at<uint32_t>(bytes, at + 4);
      user_check(plain && found == static_cast<uint32_t>(rate),
                 "'{}' is not one channel of {} 16-bit samples a second; convert it (`sox IN -r {} "
                 "-c 1 -b 16 OUT`)",
                 path, rate, rate);
      described = true;
    }
    if (name == "data") {
      user_check(described && size >= 2, "'{}' has no samples; get a fresh copy of it", path);
      std::vector<int16_t> samples(size / 2);
      std::memcpy(samples.data(), bytes.data() + at, samples.size() * 2);
      return samples;
    }
    at += size + size % 2;
  }
  user_error("'{}' has no samples; get a fresh copy of it", path);
}

}  // namespace thimble
