// How long OpenMP's threads wait for each other with their eyes open. By default they spin for
// milliseconds; where other programs want the cores, each spins away the time that the others of its
// team need, and a step takes hundreds of times as long. OpenMP reads its settings as it is loaded,
// before main(), so the program starts itself anew with them.
#pragma once

namespace thimble {

// REQUIRES: nothing has been done yet. Leaves everything as it is where the caller has chosen
// (GOMP_SPINCOUNT, OMP_WAIT_POLICY), or where the system does not let a program start itself.
void bound_waiting(char** argv);

}  // namespace thimble
