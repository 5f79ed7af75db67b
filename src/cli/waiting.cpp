#include "cli/waiting.h"

#include <unistd.h>

#include <cstdlib>
#include <string_view>

namespace thimble {
namespace {

// Turns of a wait, 15 to 50 ns each: longer than from one kernel to the next, far shorter than what
// the system gives a thread at a time. With 300, threads fall asleep between the kernels of a small
// convolutional net; with 10,000, a step beside busy neighbours takes ten times as long.
constexpr const char* kTurns = "1000";

}  // namespace

void bound_waiting(char** argv) {
  if (argv[0] == nullptr || argv[1] == nullptr) return;
  const std::string_view command = argv[1];
  const bool computes = command == "train" || command == "profile" || command == "calibrate";
  if (!computes || std::getenv("GOMP_SPINCOUNT") != nullptr ||
      std::getenv("OMP_WAIT_POLICY") != nullptr) {
    return;
  }
  if (setenv("GOMP_SPINCOUNT", kTurns, 1) != 0) return;
  execv("/proc/self/exe", argv);  // returns only where it failed
}

}  // namespace thimble
