// Knows sizes, runs nothing: for planning nets far larger than this machine.
#pragma once

#include <memory>

#include "backend/backend.h"

namespace thimble {

std::unique_ptr<Backend> make_null_backend();

}  // namespace thimble
