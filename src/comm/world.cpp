#include "comm/world.h"

#include <unistd.h>

#include <array>
#include <cstdlib>

#include "comm/mpi_library.h"
#include "comm/small_collectives.h"

namespace thimble {
namespace {

int number_in(const char* variable) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? 0 : std::atoi(text);
}

}  // namespace

int launched_ranks() {
  for (const char* variable : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MPI_LOCALNRANKS"}) {
    if (const int size = number_in(variable); size > 0) return size;
  }
  // A batch script has Slurm's variables as well; only a step of it (srun) has several of the program.
  const bool step =
      std::getenv("SLURM_STEP_ID") != nullptr && std::getenv("SLURM_PROCID") != nullptr;
  return step ? number_in("SLURM_STEP_NUM_TASKS") : 0;
}

int launched_rank() {
  for (const char* variable : {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"}) {
    if (std::getenv(variable) != nullptr) return number_in(variable);
  }
  return launched_ranks() > 1 ? number_in("SLURM_PROCID") : 0;
}

std::unique_ptr<World> World::join() {
  if (launched_ranks() <= 1) return nullptr;
  return std::unique_ptr<World>(new World(load_mpi_library().join()));
}

World::World(std::unique_ptr<Communicator> ranks) : ranks_(std::move(ranks)) {
  std::array<char, 256> name = {};
  ::gethostname(name.data(), name.size() - 1);
  const std::string own = name.data();
  here_ = static_cast<int>(std::ranges::count(gathered(*ranks_, own), own));
  failure_detector_.emplace(*ranks_);
}

}  // namespace thimble
