#include "backend/about.h"

namespace thimble {

std::string about_cpu() { return "plain kernels (this build has no oneDNN)"; }

}  // namespace thimble
