// What the system says about this process's memory.
#pragma once

#include "base/bytes.h"

namespace thimble {

Bytes resident_now();   // VmRSS; 0 where the system does not tell
Bytes resident_peak();  // VmHWM; 0 where the system does not tell

}  // namespace thimble
