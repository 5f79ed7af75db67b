#include "cli/ranks.h"

#include "base/error.h"
#include "cli/console.h"

namespace thimble {

int run_among_ranks(const std::function<int(World* world)>& command) {
  const std::unique_ptr<World> world = World::join();
  try {
    return command(world.get());
  } catch (const std::exception& error) {
    if (world != nullptr && !world->failure_detector().report_failure(error.what()))
      throw SaidElsewhere();
    throw;
  }
}

}  // namespace thimble
