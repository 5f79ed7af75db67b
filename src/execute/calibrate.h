// Profiles kernels: measures how long each takes on this machine.
//
// In a training step a kernel's tensors come from memory, not from a cache: between two uses of a
// tensor, more bytes are touched than a cache holds. So every run of a kernel gets other bytes,
// taken in turn from two rings that together are larger than the caches:
//
//   read   ┌──────────┬───────────┬─────────────┬──────────────┐   never written: numbers stay finite
//   write  └─ run 1 ──┴── run 2 ──┴──── ... ────┴──────────────┘   results, scratch, updated values
//
// Kernels run in turns, round after round, as they do in a step. So if the machine is busy with
// something else for a while, this spoils one round of many kernels, not all rounds of one. The
// fastest run counts. Rounds end when several in a row took hardly longer than the sum of the
// fastest runs.
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
  int nodes = 0;        // of the graph that run it; 0: a variant that no node runs so far
  int variant = -1;     // of a tunable kernel; -1: the kernel has no variants
};

// Every kernel that the graph runs, once, and all its variants. Kernels that take most of the
// step's time come first. Views run nothing and are left out.
std::vector<KernelUse> kernels_of(const Graph& graph, Backend& backend);

// The bytes of the rings that one run uses.
Bytes room_for(const KernelUse& use, const Kernel& kernel);

struct CalibrateOptions {
  double seconds = 60;  // stops soon after: some kernels may then have no time
  int rounds = 200;     // at most
  std::string date;     // to note beside the times
  // A limit on memory, rings included. Kernels that exceed it with one run are left out.
  Bytes room{INT64_MAX};
  // Called after every run: the share of the time that is spent, in [0, 1], and kernels that have a
  // time.
  std::function<void(double done, int measured)> progress = {};
};

// REQUIRES: the backend runs kernels.
CostTable calibrate(const std::vector<KernelUse>& kernels, Backend& backend,
                    const CalibrateOptions& options);

}  // namespace thimble
