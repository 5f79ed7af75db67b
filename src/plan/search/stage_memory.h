// The memory of a step, stage by stage (see plan/schedule/recompute.h), as a search over what to drop sees it.
//
// A *unit* is a forward value that may be dropped, with the views on it. Everything else that is live
// in a stage is there whatever is dropped: persistent values, forward values that must stay,
// gradients. The figures are those of the buffers but for fine points of in-place chains and of
// updates that wait for a replay; whoever searches with them asks the real layout in the end.
#pragma once

#include <vector>

#include "plan/schedule/recompute.h"

namespace thimble {

// One node as the search sees it.
struct UnitCall {
  struct Overwrite {  // an output may take over the bytes of a unit that is read for the last time
    int unit = 0;
    Bytes bytes;
  };
  std::vector<int> reads;             // units, each once
  std::vector<int> makes;             // units
  std::vector<Overwrite> overwrites;  // of those read
  Bytes scratch;                      // workspace
  Bytes passing;                      // results that live at this call alone when it is run again
  double seconds = 0;
};

struct StageMemory {
  StageMemory(const ForwardPass& pass, const Costs& costs);

  std::vector<NodeId> stages;
  std::vector<UnitCall> calls;       // by stage; those of the forward pass come first
  std::vector<Bytes> always;         // by stage: live when its node runs, whatever is dropped
  std::vector<Bytes> always_before;  // by stage: the same while replays run in front of the node
  size_t forward = 0;                // stages of the forward pass

  std::vector<ValueId> units;  // by unit: the value
  std::vector<Bytes> bytes;    // by unit
  std::vector<int> maker;      // by unit: stage
  std::vector<int>
      last_use;  // by unit: the last stage that may want it, if only to compute others again
  std::vector<std::vector<int>> uses;  // by unit: stages that read it, ascending
  std::vector<bool> never_stays;       // by unit: marked to be computed again
};

}  // namespace thimble
