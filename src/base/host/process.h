// This process: what the system says about its memory and its machine, and what it makes of
// signals.
#pragma once

#include <string>

#include "base/number/bytes.h"

namespace thimble {

Bytes resident_now();         // VmRSS; 0 where the system does not tell
Bytes resident_peak();        // VmHWM; 0 where the system does not tell
void forget_resident_peak();  // counts anew from what is resident now, where the system lets it

// For the start of a program. A write that the system refuses becomes an error of that write, not
// the end of the process (SIGPIPE, SIGXFSZ). Where standard input, output or error is closed, its
// number is taken, so that no file opened later gets it, along with what is printed: what goes to
// standard error is lost then, and writing to standard output still fails.
void prepare_process();

std::string cpu_model();  // "Intel(R) Xeon(R) ..."; "unknown cpu" where the system does not tell

}  // namespace thimble
