// The libraries under each backend of this build, for `thimble --version`.
#pragma once

#include <string>

namespace thimble {

std::string about_cpu();   // "oneDNN 2.7.2, avx512_core"; "plain kernels (no oneDNN in this build)"
std::string about_cuda();  // the library's file, or why it cannot be used; loads it

}  // namespace thimble
