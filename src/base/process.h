// What the system says about this process's memory, and about the machine it runs on.
#pragma once

#include <string>

#include "base/bytes.h"

namespace thimble {

Bytes resident_now();   // VmRSS; 0 where the system does not tell
Bytes resident_peak();  // VmHWM; 0 where the system does not tell

std::string cpu_model();  // "Intel(R) Xeon(R) ..."; "unknown cpu" where the system does not tell

}  // namespace thimble
