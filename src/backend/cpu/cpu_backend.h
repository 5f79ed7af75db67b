// The CPU: oneDNN for convolutions and products, own threaded kernels for the rest, reference
// kernels where neither fits.
#pragma once

#include <memory>

#include "backend/backend.h"

namespace thimble {

// threads: 0 means one per core that this process may use; more than can be had is a UserError
// (team.h). Results depend on the thread count, never on the plan.
std::unique_ptr<Backend> make_cpu_backend(int threads);

extern const DeviceDef device_cpu;

}  // namespace thimble
