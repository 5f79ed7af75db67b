// Ranks whose bytes go through the memory of the host: where several share a card, or NCCL is
// missing.
#pragma once

#include <memory>

#include "backend/cuda/device.h"
#include "comm/communicator.h"

namespace thimble {

std::unique_ptr<Communicator> make_staged_ranks(Communicator& ranks, CudaDevice& device);

}  // namespace thimble
