// The result of a run, for programs.
#pragma once

#include "report/step_report.h"
#include "train/trainer.h"

namespace thimble {

// The peak memory of the process outside the arena.
Bytes process_beside(Bytes arena);

// The facts of the planned step, and those of the run (docs/cli.md).
nlohmann::json summary_of(const PlannedTraining& planned, const TrainResult& result);

}  // namespace thimble
