// How OpenMP's threads wait (backend/cpu/thread_waiting.h) is read as OpenMP is loaded, before
// main(): so the program starts itself anew with what suits it.
#pragma once

namespace thimble {

// REQUIRES: nothing has been done yet. Leaves everything as it is where the caller has chosen
// (GOMP_SPINCOUNT, OMP_WAIT_POLICY), or where the system does not let a program start itself.
void settle_openmp_policy(char** argv);

}  // namespace thimble
