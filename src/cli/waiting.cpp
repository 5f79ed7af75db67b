#include "cli/waiting.h"

#include <unistd.h>

#include <cstdlib>
#include <string_view>

#include "base/openmp_waiting.h"
#include "cli/early_end.h"

namespace thimble {

void settle_waiting(char** argv) {
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
  hold_the_end();
  execv("/proc/self/exe", argv);  // returns only where it failed
  hear_of_the_end();
}

}  // namespace thimble
