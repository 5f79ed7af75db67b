// The ranks that this process was started among, if any: by mpirun, or by Slurm.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "comm/failure_detector.h"

namespace thimble {

// How many ranks a launcher says there are; 0: nobody does.
int launched_ranks();

// Which of them this process is; 0 where nobody says. Known before MPI is.
int launched_rank();

class World {
 public:
  // Null: this is a process alone. UserError where MPI is missing.
  static std::unique_ptr<World> join();

  Communicator& ranks() { return *ranks_; }
  int rank() const { return ranks_->rank(); }
  int size() const { return ranks_->size(); }
  bool first() const { return rank() == 0; }
  // How many of them are on this machine.
  int here() const { return here_; }
  FailureDetector& failure_detector() { return *failure_detector_; }

 private:
  explicit World(std::unique_ptr<Communicator> ranks);

  // MPI ends while the lines still are watched: it waits for all ranks.
  std::optional<FailureDetector> failure_detector_;
  std::unique_ptr<Communicator> ranks_;
  int here_ = 1;
};

}  // namespace thimble
