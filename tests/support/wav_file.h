// A recording as the bytes of a .wav file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace thimble {

inline std::string wav(const std::vector<int16_t>& samples, uint32_t rate = 8000,
                       uint16_t channels = 1) {
  std::string text = "RIFF";
  const auto add = [&](auto value) {
    text.append(reinterpret_cast<const char*>(&value), sizeof(value));
  };
  add(static_cast<uint32_t>(36 + 2 * samples.size()));
  text += "WAVEfmt ";
  add(uint32_t{16});
  add(uint16_t{1});
  add(channels);
  add(rate);
  add(rate * 2 * channels);
  add(static_cast<uint16_t>(2 * channels));
  add(uint16_t{16});
  text += "data";
  add(static_cast<uint32_t>(2 * samples.size()));
  text.append(reinterpret_cast<const char*>(samples.data()), 2 * samples.size());
  return text;
}

}  // namespace thimble
