// The machine that a command plans for: its backend, and the measured times of its kernels. A
// command opens one. The file of times is read once, and profiling adds to it.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "comm/interconnect.h"
#include "execute/calibrate.h"
#include "plan/plan.h"
#include "recipe/recipe.h"

namespace thimble {

struct Step;

// A limit on profiling, which times the kernels that the file has no times of.
struct Profiling {
  // Times kernels, in order, for `seconds`, each in at most `room` bytes of memory.
  using Timer =
      std::function<CostTable(const std::vector<KernelUse>&, Backend&, double seconds, Bytes room)>;
  std::string file;  // of measured times
  double seconds = 0;
  Timer timer = {};
};
// The limit for a recipe's machine. It is 0 where costs are not automatic, where no folder keeps
// times, and with THIMBLE_CALIBRATE=off.
Profiling usual_profiling(const Recipe& recipe);

class Machine : public std::enable_shared_from_this<Machine> {
 public:
  // On a device that runs nothing, nothing is timed.
  static std::shared_ptr<Machine> open(const Recipe& recipe, Profiling profiling = {});
  Machine(std::unique_ptr<Backend> backend, std::string costs_file, Profiling profiling = {});

  Backend& backend() const { return *backend_; }
  // The measured times of its kernels.
  const CostTable& times();
  // Counts changes of times: a price of an earlier generation is stale.
  int generation() const { return generation_; }

  // Costs of the nodes of `graph`, some form of the recipe's step (gather_costs). A whole step runs
  // faster than its kernels one by one: they overlap, and find inputs in caches. So the time of a
  // whole step scales those of its kernels. Steps without one are scaled by scale_untimed_steps().
  // Tunable kernels use their fastest variant.
  Costs price(const Recipe& recipe, const Graph& graph);
  void scale_untimed_steps(double share) { usual_share_ = share; }
  // The link between ranks: the recipe's, else the measured one, else the memory of one machine.
  Interconnect interconnect_of(const Recipe& recipe);

  // A limit on the memory of a timed kernel. On the host, where the arena is not allocated yet, it
  // is at most the size of the arena.
  void set_room(Bytes room) { room_ = room; }
  bool has_room(const KernelUse& use) const {
    return room_for(use, backend_->kernel(use.signature)) <= room_;
  }
  bool may_profile() const { return seconds_left_ > 0; }
  // Times kernels, in order. `part`: of the seconds left. Returns whether times changed.
  bool profile(std::vector<KernelUse> kernels, double part);
  int profiled_kernels() const { return profiled_kernels_; }
  double profiling_seconds() const { return profiling_seconds_; }
  const std::string& profiling_file() const { return profiling_.file; }

  // Frees the kernels of all other steps: candidates that were not chosen.
  void keep_kernels_of(std::span<const Step* const> steps);

 private:
  // Writes the file. False: it cannot be written.
  bool keep(const CostTable& times);
  void read();

  const std::unique_ptr<Backend> backend_;
  const std::string name_;        // key of its times in the file
  const std::string costs_file_;  // empty: costs are modelled
  const Profiling profiling_;
  std::optional<CostFile> known_;                           // none: not read yet
  std::optional<std::filesystem::file_time_type> read_at_;  // time of the file's last change
  int generation_ = 0;
  double usual_share_ = 1;
  Bytes room_{INT64_MAX};
  double seconds_left_ = 0;
  int profiled_kernels_ = 0;
  double profiling_seconds_ = 0;
};

// The key of the recipe's whole step in a table of measured times, whatever its plan and its codec.
// `seconds` of the entry are the step's, `modelled` is the sum over its kernels.
std::string whole_step_key(const Recipe& recipe, const Backend& backend);

}  // namespace thimble
