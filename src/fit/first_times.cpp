#include "fit/first_times.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <ctime>

#include "base/error.h"
#include "base/process.h"
#include "execute/calibrate.h"
#include "execute/costs.h"
#include "execute/costs_path.h"
#include "fit/candidates.h"
#include "pipeline/variant.h"
#include "plan/make_plan.h"
#include "plan/schedule/recompute.h"

namespace thimble {
namespace {

constexpr double kSeconds = 4;  // a kernel that has begun goes on to its end

bool is_forbidden() {
  const char* const word = std::getenv("THIMBLE_CALIBRATE");
  return word != nullptr && std::string_view(word) == "off";
}

// The kernels of the step; of a tight budget, those of microbatches that leave room for most of them.
std::vector<KernelUse> kernels_within(Recipe recipe, Backend& backend, Bytes room) {
  if (recipe.codec.automatic) recipe.codec = {};
  const int64_t rows = microbatches_of(recipe).rows;
  std::vector<int64_t> smaller;
  if (recipe.tokens == 0) smaller = rows_to_try(rows, 1);
  for (size_t i = 0;; ++i) {
    const TrainingGraph training = make_graph(recipe, step_shapes(recipe).front());
    std::vector<KernelUse> kernels = kernels_of(training.model.graph, backend);
    const auto all = std::ssize(kernels);
    std::erase_if(kernels, [&](const KernelUse& use) {
      return room_for(use, backend.kernel(use.signature)) > room;
    });
    if (std::ssize(kernels) * 4 >= all * 3 || i == smaller.size()) return kernels;
    recipe.microbatch = smaller[i];
  }
}

// Leaves out what was measured before; all of it, where that is enough to go by: what is not known is
// scaled like what is, which one odd kernel that another net has too would spoil.
void leave_out_known(std::vector<KernelUse>& kernels, const CostTable& table) {
  constexpr double kEnough = 0.1;  // of a step's time
  double all = 0, known = 0;
  for (const KernelUse& use : kernels) {
    const double seconds = use.modelled * use.nodes;
    all += seconds;
    if (table.contains(use.key)) known += seconds;
  }
  std::erase_if(kernels, [&](const KernelUse& use) {
    return known >= kEnough * all || table.contains(use.key);
  });
}

// What the arena will take at most.
Bytes room_of(const Recipe& recipe, Backend& backend) {
  if (recipe.memory && *recipe.memory > kLeastMemory) return *recipe.memory;
  Recipe plain = recipe;
  if (plain.codec.automatic) plain.codec = {};
  const TrainingGraph training = make_graph(plain, step_shapes(plain).front());
  const Costs costs = gather_costs(training.model.graph, backend);
  const PlanRequest request = request_for(plain, training.model.graph, costs);
  return cost_of(request, schedule_once(request)).live_peak;
}

}  // namespace

std::optional<FirstTimes> measure_first_times(const Recipe& recipe) {
  if (recipe.costs != kAutomaticCosts || is_forbidden()) return std::nullopt;
  const std::string path = usual_costs_path(recipe.device);
  if (path.empty()) return std::nullopt;
  const auto backend = make_backend(recipe.device, recipe.on);
  if (!backend->runs()) return std::nullopt;
  const std::string known = costs_to_read(recipe.costs, recipe.device);
  CostTable table;
  if (!known.empty()) table = read_costs(known)[backend->machine()];
  const Bytes room = backend->remote() ? Bytes(INT64_MAX) : room_of(recipe, *backend);
  std::vector<KernelUse> kernels = kernels_within(recipe, *backend, room);
  leave_out_known(kernels, table);
  if (kernels.empty()) return std::nullopt;

  const auto start = std::chrono::steady_clock::now();
  const CostTable times =
      calibrate(kernels, *backend, {.seconds = kSeconds, .date = today(), .room = room});
  try {
    add_costs(path, backend->machine(), times);
  } catch (const UserError&) {  // nowhere to keep them: the plan goes by its model
    return std::nullopt;
  }
  forget_resident_peak();  // what is said of a run is of the run
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return FirstTimes{static_cast<int>(times.size()), seconds, path};
}

}  // namespace thimble
