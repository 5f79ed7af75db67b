// A rank that is told to end while no training is under way says so: before ranks hold lines to
// each other (comm/failure_detector). After those are closed, mpirun ends all ranks where one is
// gone.
#pragma once

namespace thimble {

// From now on; while training is under way, StopSignals has its place. Nothing, where this process
// is no rank. REQUIRES: nothing has been done yet.
void handle_aborts();

// Before the program starts itself anew: what it is told meanwhile waits until it hears again.
void hold_aborts();

}  // namespace thimble
