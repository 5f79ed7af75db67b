// The machine that a command plans for: its backend, and the times that its kernels are known to take.
// Opened once a command. Times are read from their file once; whoever profiles adds to them and to the file.
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

// A limit on timing kernels that nobody has timed.
struct Profiling {
  // Times of the kernels that it gets to in the seconds, in no more memory than `room` a kernel.
  using Timer =
      std::function<CostTable(const std::vector<KernelUse>&, Backend&, double seconds, Bytes room)>;
  std::string file;  // where times are kept
  double seconds = 0;
  Timer timer = {};
};
// The limit for a recipe's machine. It is 0 where costs are not automatic, where no folder keeps times, and
// with THIMBLE_CALIBRATE=off.
Profiling usual_profiling(const Recipe& recipe);

class Machine : public std::enable_shared_from_this<Machine> {
 public:
  // Of a device that runs nothing, nothing is timed.
  static std::shared_ptr<Machine> open(const Recipe& recipe, Profiling profiling = {});
  Machine(std::unique_ptr<Backend> backend, std::string costs_file, Profiling profiling = {});

  Backend& backend() const { return *backend_; }
  // Of its kernels, as far as they are known.
  const CostTable& times();
  // Grows whenever times changed, and prices with them.
  int generation() const { return generation_; }

  // Costs of the nodes of `graph`, some form of the recipe's step (gather_costs). A whole step runs faster
  // than its kernels one by one: they overlap, and find inputs in caches. So the time of a whole step scales
  // those of its kernels. Steps without one are scaled by scale_untimed_steps(). Tunable kernels use their
  // fastest variant.
  Costs price(const Recipe& recipe, const Graph& graph);
  void scale_untimed_steps(double share) { usual_share_ = share; }
  // The link between ranks: the recipe's, else the measured one, else the memory of one machine.
  Interconnect interconnect_of(const Recipe& recipe);

  // No timed kernel takes more memory: on the host, where the arena is not there yet, not even the arena's.
  void set_room(Bytes room) { room_ = room; }
  bool has_room(const KernelUse& use) const {
    return room_for(use, backend_->kernel(use.signature)) <= room_;
  }
  bool may_profile() const { return seconds_left_ > 0; }
  // Times kernels, the first ones first, in that part of the seconds left. Whether times changed.
  bool profile(std::vector<KernelUse> kernels, double part);
  int profiled_kernels() const { return profiled_kernels_; }
  double profiling_seconds() const { return profiling_seconds_; }
  const std::string& profiling_file() const { return profiling_.file; }

  // Frees the kernels of all other steps: those of candidates that were not chosen.
  void keep_kernels_of(std::span<const Step* const> steps);

 private:
  // False: the file cannot be written.
  bool keep(const CostTable& times);
  void read();

  const std::unique_ptr<Backend> backend_;
  const std::string name_;        // that its times are kept by
  const std::string costs_file_;  // empty: costs are modelled
  const Profiling profiling_;
  std::optional<CostFile> known_;                           // none: not read yet
  std::optional<std::filesystem::file_time_type> read_at_;  // as it was written last
  int generation_ = 0;
  double usual_share_ = 1;
  Bytes room_{INT64_MAX};
  double seconds_left_ = 0;
  int profiled_kernels_ = 0;
  double profiling_seconds_ = 0;
};

// The name of the recipe's step in a table of measured times, whatever its plan and its codec:
// `seconds` are the step's, `modelled` its kernels' together.
std::string whole_step_key(const Recipe& recipe, const Backend& backend);

}  // namespace thimble
