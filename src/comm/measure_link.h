// Measures the link between these ranks.
#pragma once

#include "comm/communicator.h"
#include "comm/interconnect.h"

namespace thimble {

// The fastest of many exchanges, of small and of large pieces. Called by all ranks; all get the
// same.
Interconnect measure_link(Communicator& ranks);

}  // namespace thimble
