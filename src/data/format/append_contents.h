// All of one file behind what another has already.
#pragma once

#include "base/io/file.h"

namespace thimble {

void append_contents(const ReadFile& from, AtomicFile& to);

}  // namespace thimble
