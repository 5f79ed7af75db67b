// MPI lies in a library of its own, libthimble_mpi.so, loaded when the program was started as one
// of several ranks: a process alone pays nothing for it, and one program serves machines with and
// without MPI.
#pragma once

#include <memory>
#include <string>

#include "comm/communicator.h"

namespace thimble {

// All that the library shows: `thimble_mpi_entry`, a function of this type.
struct MpiEntry {
  const char* build;  // its build_id(); where it is another than ours, nothing else can be trusted
  std::unique_ptr<Communicator> (*join)();
  std::string (*version)();
};
using MpiEntryFunction = const MpiEntry*();

// Loads it, for as long as the process lives. UserError, saying what to install, where it is not
// there, cannot be loaded, or is of another build.
const MpiEntry& load_mpi_library();

// The library's file and MPI's version, or why there is none: for `thimble --version`; loads it.
std::string about_mpi();

}  // namespace thimble
