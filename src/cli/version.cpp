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

std::string version_text(const std::string& commit) {
  const std::string_view id = build_id();
  const size_t comma = id.find(", ");
  const std::string_view digest = id.substr(id.find('+') + 1, comma - id.find('+') - 1);
  const bool known = commit != "unknown";
  const std::string which = !known ? "The sources were in no git repository.\n"
                            : commit.ends_with("-dirty")
                                ? "The commit is that of the sources, which were changed since.\n"
                                : "The commit is that of the sources.\n";
  return fmt::format(
      "thimble {}\ncommit    {}\ncompiler  {}\ncpu       {}\ncuda      {}\nmpi       {}\n\n"
      "{}{} is a digest of the sources that the program shares with its libraries:\n"
      "libthimble_cuda.so and libthimble_mpi.so are loaded where theirs is the same.",
      id.substr(0, comma), commit, id.substr(comma + 2), about_cpu(), about_cuda(), about_mpi(),
      which, digest);
}

}  // namespace thimble
