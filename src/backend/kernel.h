// A kernel: one backend's implementation of a node.
#pragma once

#include <string>

#include "base/number/bytes.h"
#include "graph/op.h"

namespace thimble {

// A kernel bound to one signature. Made once at planning time; run() is called for every node of
// that signature, with other addresses each time.
// REQUIRES of run(): no allocation, and the same bits out for the same bits in, wherever they lie.
class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual void run(const KernelArgs& args) = 0;

  std::string name;  // for `plan -v`: "onednn brgconv:avx512_core", "reference"
  Bytes workspace;   // scratch in the arena for the duration of one run
};

}  // namespace thimble
