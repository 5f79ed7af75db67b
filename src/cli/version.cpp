#include "cli/version.h"

#include <fmt/format.h>

#include "backend/about.h"
#include "base/build_id.h"
#include "comm/mpi_library.h"

namespace thimble {

std::string version_number() {
  const std::string_view id = build_id();
  return std::string(id.substr(0, id.find_first_of("+, ")));
}

std::string version_text(const char* commit) {
  const std::string_view id = build_id();
  const size_t comma = id.find(", ");
  return fmt::format(
      "thimble {}\ncommit    {}\ncompiler  {}\ncpu       {}\ncuda      {}\nmpi       {}",
      id.substr(0, comma), commit, id.substr(comma + 2), about_cpu(), about_cuda(), about_mpi());
}

}  // namespace thimble
