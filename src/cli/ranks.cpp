#include "cli/ranks.h"

#include <sched.h>
#include <unistd.h>

#include <array>
#include <cstdlib>

#include "base/cores.h"
#include "base/error.h"
#include "cli/console.h"
#include "comm/agreement.h"

namespace thimble {
namespace {

// The machine and the cores of it that this rank may use.
std::string cores_of_rank() {
  std::array<char, 256> name = {};
  ::gethostname(name.data(), name.size() - 1);
  std::string text = name.data();
  cpu_set_t cores;
  CPU_ZERO(&cores);
  ::sched_getaffinity(0, sizeof cores, &cores);
  for (size_t c = 0; c < CPU_SETSIZE; ++c) {
    if (CPU_ISSET(c, &cores)) text += fmt::format(" {}", c);
  }
  return text;
}

// Threads of each rank: the cores that it may use, divided among the ranks that may use the same. As many
// on every rank, since kernels round by them.
int threads_of_rank(World& world) {
  const std::string own = cores_of_rank();
  const auto sharing = std::ranges::count(gathered(world.ranks(), own), own);
  const double threads = std::max(1, usable_cores() / static_cast<int>(sharing));
  return static_cast<int>(std::ranges::min(gathered(world.ranks(), threads)));
}

}  // namespace

Asked read_for_ranks(const std::string& model, Settings typed, World* world) {
  if (world != nullptr) {
    const auto ranks = typed.find("ranks");
    user_check(ranks == typed.end() || ranks->second == fmt::format("{}", world->size()),
               "--ranks {} is not what was started: {} ranks; leave --ranks out",
               ranks == typed.end() ? "" : read_text(ranks->second, "--ranks"), world->size());
    typed["ranks"] = fmt::format("{}", world->size());
  }
  Asked asked = read_recipe(model, typed);
  const char* const named = std::getenv("OMP_NUM_THREADS");
  if (world != nullptr && asked.recipe.on.threads == 0 && (named == nullptr || *named == '\0')) {
    asked.recipe.on.threads = threads_of_rank(*world);
  }
  return asked;
}

int run_among_ranks(const std::function<int(World* world)>& command) {
  const std::unique_ptr<World> world = World::join();
  try {
    return command(world.get());
  } catch (const std::exception& error) {
    if (world != nullptr && !world->lifeline().last_words(error.what())) throw SaidElsewhere();
    throw;
  }
}

}  // namespace thimble
