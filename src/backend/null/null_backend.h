// Knows sizes, runs nothing: for planning nets far larger than this machine.
#pragma once

#include "backend/backend.h"

namespace thimble {

extern const DeviceDef device_null;

}  // namespace thimble
