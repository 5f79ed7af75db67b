// The memory of a step, stage by stage (see plan/schedule/recompute.h), as the eviction search
// estimates it.
//
// An *evictable value* is a forward value that may be dropped, with its views. Everything else that
// is live in a stage stays whatever is dropped: persistent values, forward values that must
// stay, gradients. The estimate is exact but for some in-place chains and for updates that wait for
// a replay. So a search lays out its result, which gives the true bytes.
#pragma once

#include <vector>

#include "plan/schedule/recompute.h"

namespace thimble {

// One node as the search sees it.
struct EvictableUse {
  struct Overwrite {  // an output takes the bytes of a value at its last read
    int evictable = 0;
    Bytes bytes;
  };
  std::vector<int> reads;             // evictable values, each once
  std::vector<int> makes;             // evictable values
  std::vector<Overwrite> overwrites;  // of values in `reads`
  Bytes scratch;                      // workspace
  Bytes passing;  // results that are not evictable: live at this call alone in a replay
  double seconds = 0;
};

struct StepMemoryModel {
  StepMemoryModel(const ForwardPass& pass, const Costs& costs);

  std::vector<NodeId> stages;
  std::vector<EvictableUse> calls;   // by stage; those of the forward pass come first
  std::vector<Bytes> always;         // by stage: live when its node runs, whatever is dropped
  std::vector<Bytes> always_before;  // by stage: the same while replays run before the node
  size_t forward = 0;                // stages of the forward pass

  std::vector<ValueId> evictables;  // by evictable value: the value
  std::vector<Bytes> bytes;         // by evictable value
  std::vector<int> maker;           // by evictable value: stage
  // By evictable value: the last stage that reads it, or a value recomputed from it.
  std::vector<int> last_use;
  std::vector<std::vector<int>> uses;  // by evictable value: stages that read it, ascending
  std::vector<bool> never_stays;       // by evictable value: marked `recompute`
};

}  // namespace thimble
