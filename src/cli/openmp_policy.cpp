#include "cli/openmp_policy.h"

#include <unistd.h>

#include <cstdlib>
#include <string_view>

#include "base/host/openmp_waiting.h"
#include "cli/abort_handler.h"

namespace thimble {

void settle_openmp_policy(char** argv) {
  if (argv[0] == nullptr || argv[1] == nullptr) return;
  const std::string_view command = argv[1];
  const bool computes = command == "train" || command == "profile" || command == "calibrate";
  if (!computes || std::getenv("GOMP_SPINCOUNT") != nullptr ||
      std::getenv("OMP_WAIT_POLICY") != nullptr) {
    return;
  }
  if (setenv("GOMP_SPINCOUNT", kSpinCount, 1) != 0 ||
      setenv("OMP_WAIT_POLICY", kWaitPolicy, 1) != 0) {
    return;
  }
  hold_aborts();
  execv("/proc/self/exe", argv);  // returns only where it failed
  handle_aborts();
}

}  // namespace thimble
