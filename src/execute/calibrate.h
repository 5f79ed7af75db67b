// Measures how long kernels take on this machine.
//
// In a training step a kernel's tensors come from memory, not from a cache: far more bytes pass by
// between two uses of a tensor than a cache holds. So every run of a kernel gets other bytes, taken
// in turn from two rings that together are larger than the caches:
//
//   read   ┌──────────┬───────────┬─────────────┬──────────────┐   never written: numbers stay sane
//   write  └─ run 1 ──┴── run 2 ──┴──── ... ────┴──────────────┘   results, scratch, updated values
//
// Kernels run in turns, round after round, as they do in a step. So a stretch in which the machine was
// busy with something else spoils one round of many kernels, not all rounds of one. The fastest run
// counts. Rounds end when several in a row were hardly slower than the fastest runs together.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "execute/cost_table.h"
#include "graph/graph.h"

namespace thimble {

// One kernel to time.
struct KernelUse {
  std::string key;      // kernel_key
  Signature signature;  // a node's; others with the same key take as long
  double modelled = 0;  // seconds of one run
  int nodes = 0;        // of the graph that run it; 0: a variant that none runs so far
  int variant = -1;     // of the kernel, where it has such
};

// Every kernel that the graph runs, once, and all its variants; those that matter most for the time
// of a step first. Views run nothing and are left out.
std::vector<KernelUse> kernels_of(const Graph& graph, Backend& backend);

// The bytes of the rings that one run uses.
Bytes room_for(const KernelUse& use, const Kernel& kernel);

struct CalibrateOptions {
  double seconds = 60;  // stops soon after: kernels still without a time stay without
  int rounds = 200;     // at most
  std::string date;     // to note beside the times
  // Rings and all take no more; kernels of which one run would are left out.
  Bytes room{INT64_MAX};
  // Called after every run: the share of the time that is spent, in [0, 1], and kernels that have a
  // time.
  std::function<void(double done, int measured)> progress = {};
};

// REQUIRES: the backend runs kernels.
CostTable calibrate(const std::vector<KernelUse>& kernels, Backend& backend,
                    const CalibrateOptions& options);

}  // namespace thimble
