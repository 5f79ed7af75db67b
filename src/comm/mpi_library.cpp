#include "comm/mpi_library.h"

#include <dlfcn.h>

#include <cstring>

#include "base/build_id.h"
#include "base/error.h"
#include "base/host/library_place.h"

namespace thimble {
namespace {

constexpr const char* kName = "libthimble_mpi.so";

}  // namespace

const MpiEntry& load_mpi_library() {
  const std::filesystem::path file = find_beside(kName);
  user_check(!file.empty(),
             "this was started as one of several ranks, and {} is neither in {} nor in its lib or "
             "../lib; install OpenMPI (`apt-get install libopenmpi-dev openmpi-bin`) and build "
             "again, or start without mpirun",
             kName, own_folder().string());
  // MPI loads parts of itself later, which look for its symbols among those of all.
  void* const library = dlopen(file.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) {
    user_error(
        "{} cannot be loaded: {}; install OpenMPI (`apt-get install openmpi-bin`), or start one "
        "process without mpirun",
        file.string(), dlerror());
  }
  auto* const entry = reinterpret_cast<MpiEntryFunction*>(dlsym(library, "thimble_mpi_entry"));
  user_check(entry != nullptr, "{} is not Thimble's; build it anew", file.string());
  const MpiEntry& found = *entry();
  user_check(std::strcmp(found.build, build_id()) == 0,
             "{} belongs to another build, {}, and this one is {}; build both together",
             file.string(), found.build, build_id());
  return found;
}

std::string about_mpi() {
  const std::filesystem::path file = find_beside(kName);
  if (file.empty()) return "not in this build (libopenmpi-dev was not installed)";
  try {
    return load_mpi_library().version() + ", " + file.string();
  } catch (const UserError& error) {
    return error.what();
  }
}

}  // namespace thimble
