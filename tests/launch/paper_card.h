// A card on paper: CUDA's runtime, cuDNN and cuBLASLt as the kernels of the backend call them, with
// nothing behind them. Launches are held to the limits of a real card, and nothing runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace thimble {

struct PaperCard {
  int64_t launches = 0;
  size_t most_shared = 0;            // bytes that a block asked for beside its static ones
  std::vector<std::string> refused;  // launches that no card of the architecture would take
};

// The card of this process.
PaperCard& paper_card();

}  // namespace thimble
