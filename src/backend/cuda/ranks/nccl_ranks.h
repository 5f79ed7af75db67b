// Ranks over NCCL, which is loaded when it is asked for. Its own buffers are on the card beside the
// arena.
#pragma once

#include <memory>

#include "backend/cuda/device.h"
#include "comm/communicator.h"

namespace thimble {

// Null: NCCL is not here (on any of the ranks), or was not there when this was built. Its id travels over
// `ranks`.
std::unique_ptr<Communicator> make_nccl_ranks(Communicator& ranks, CudaDevice& device);

}  // namespace thimble
