// Ranks over NCCL, which is loaded when it is asked for. Its own buffers are on the card beside the
// arena.
#pragma once

#include <memory>

#include "backend/cuda/device.h"
#include "comm/communicator.h"

namespace thimble {

// Null: NCCL is not here (on any of the ranks), was not there when this was built, or is not wanted
// (THIMBLE_NCCL=off). Its id travels over `ranks`, which are that many processes; one that stands
// for all of them sends to itself.
std::unique_ptr<Communicator> make_nccl_ranks(Communicator& ranks, int processes,
                                              CudaDevice& device);

}  // namespace thimble
