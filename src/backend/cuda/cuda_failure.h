// Failed CUDA calls as a sentence for the user: what went wrong, and what to do.
#pragma once

#include <cuda_runtime.h>

#include <string>
#include <string_view>

#include "base/number/bytes.h"

namespace thimble {

// True: the card, or this process's part of it, is lost. Every later call fails alike.
bool is_lost(cudaError_t status);

// `driver`: the version of CUDA that the driver knows, as cudaDriverGetVersion says; 0: no driver.
std::string failure_text(cudaError_t status, std::string_view what, int driver);

// `what` did not fit into memory; `asked` is its size, 0 where nobody knows. `total` 0: nor how
// much there is.
std::string no_room_text(std::string_view what, Bytes asked, Bytes free, Bytes total);

// Throws NoRoom with that text and what the device says of its memory.
[[noreturn]] void fail_for_room(std::string_view what, Bytes asked);

}  // namespace thimble
