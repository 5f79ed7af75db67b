// Ranks whose bytes are on cards: the same seam as between processes (comm/communicator.h), with
// addresses of the device, in the order of the device's stream. Calls are queued, so a CUDA graph
// can capture them.
#pragma once

#include <memory>

#include "backend/cuda/device.h"
#include "comm/communicator.h"

namespace thimble {

// Over NCCL where every process has a card of its own and NCCL is there, else through the memory of
// the host. A process that stands for all ranks sends to itself. `ranks` are the processes. Called
// by all of them.
std::unique_ptr<Communicator> make_device_ranks(Communicator& ranks, CudaDevice& device);

// The processes themselves, as the host reaches them, called by what joins their cards.
std::unique_ptr<Communicator> make_host_ranks(Communicator& ranks, std::string_view name);

// One process that stands for `size` ranks, as Self does.
std::unique_ptr<Communicator> make_device_self(int size, CudaDevice& device);

// The card of this process among those of its machine: ranks of a machine take them in turn.
int card_of_rank(int cards);

}  // namespace thimble
