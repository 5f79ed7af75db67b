// Times one can believe without asking: what a command plans by and was never measured here is measured in
// its first seconds, and the times are kept for all that follows, as `thimble calibrate` keeps them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "execute/calibrate.h"
#include "recipe/recipe.h"

namespace thimble {

// What a command may spend on it, and has spent.
class FirstTimes {
 public:
  // Nothing may be measured where the recipe's costs are not automatic, the device runs nothing, there is
  // no folder to keep times in, or THIMBLE_CALIBRATE=off forbids it.
  explicit FirstTimes(const Recipe& recipe);
  // Times are kept in `file`, and come from `timer`: of those kernels that it gets to in the seconds.
  using Timer = std::function<CostTable(const std::vector<KernelUse>&, Backend&, double seconds)>;
  FirstTimes(const Recipe& recipe, std::string file, double seconds, Timer timer);

  // The kernels of the recipe's step, in that part of what is left, where less than a tenth of its time
  // was measured before.
  void measure_step(double part);
  // The first ones first. Whether there are more times now than before.
  bool measure(std::vector<KernelUse> kernels, Backend& backend, double part);

  // What is known of the machine.
  CostTable known(const Backend& backend) const;
  // Whether a run of it takes no more memory than the recipe's budget: on the host, where the arena is not
  // there yet, nothing may.
  bool has_room(const KernelUse& use, Backend& backend) const;

  bool may_measure() const { return left_ > 0; }
  int kernels() const { return kernels_; }  // that were measured
  double seconds() const { return spent_; }
  const std::string& file() const { return file_; }

 private:
  Recipe recipe_;
  std::string file_;
  Timer timer_;
  double left_ = 0;
  Bytes room_{INT64_MAX};
  int kernels_ = 0;
  double spent_ = 0;
};

}  // namespace thimble
