// Recordings in .wav files: one channel of 16-bit samples.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace thimble {

// UserError, naming the file, where it is none, is truncated or empty, has more channels or another
// number of samples a second than `rate`.
std::vector<int16_t> read_wav(const std::string& path, int rate);

}  // namespace thimble
