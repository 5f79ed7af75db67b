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
constexpr double kLeast = 0.1;  // less is not worth beginning with

bool is_forbidden() {
  const char* const word = std::getenv("THIMBLE_CALIBRATE");
  return word != nullptr && std::string_view(word) == "off";
}

// The kernels of the step; of a tight budget, those of microbatches that leave room for most of them.
std::vector<KernelUse> kernels_within(Recipe recipe, Backend& backend, const FirstTimes& times) {
  if (recipe.codec.automatic) recipe.codec = {};
  const int64_t rows = microbatches_of(recipe).rows;
  std::vector<int64_t> smaller;
  if (recipe.tokens == 0) smaller = rows_to_try(rows, 1);
  for (size_t i = 0;; ++i) {
    const TrainingGraph training = make_graph(recipe, step_shapes(recipe).front());
    std::vector<KernelUse> kernels = kernels_of(training.model.graph, backend);
    const auto all = std::ssize(kernels);
    std::erase_if(kernels, [&](const KernelUse& use) { return !times.has_room(use, backend); });
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
  const VariantShape shape = step_shapes(plain).front();
  const TrainingGraph training = make_graph(plain, shape);
  const Costs costs = gather_costs(training.model.graph, backend);
  const PlanRequest request = request_for(plain, shape, training.model.graph, costs);
  return cost_of(request, schedule_once(request)).live_peak;
}

}  // namespace

FirstTimes::FirstTimes(const Recipe& recipe) : recipe_(recipe) {
  if (recipe.costs != kAutomaticCosts || is_forbidden()) return;
  file_ = usual_costs_path(recipe.device);
  if (file_.empty()) return;
  const auto backend = make_backend(recipe.device, recipe.on);
  if (!backend->runs()) return;
  if (!backend->remote()) room_ = room_of(recipe, *backend);
  left_ = kSeconds;
  timer_ = [room = room_](const std::vector<KernelUse>& kernels, Backend& on, double seconds) {
    return calibrate(kernels, on, {.seconds = seconds, .date = today(), .room = room});
  };
}

FirstTimes::FirstTimes(const Recipe& recipe, std::string file, double seconds, Timer timer)
    : recipe_(recipe), file_(std::move(file)), timer_(std::move(timer)), left_(seconds) {}

CostTable FirstTimes::known(const Backend& backend) const {
  const std::string path = costs_to_read(recipe_.costs, recipe_.device);
  if (path.empty()) return {};
  return read_costs(path)[backend.machine()];
}

bool FirstTimes::has_room(const KernelUse& use, Backend& backend) const {
  return room_for(use, backend.kernel(use.signature)) <= room_;
}

void FirstTimes::measure_step(double part) {
  if (!may_measure()) return;
  const auto backend = make_backend(recipe_.device, recipe_.on);
  std::vector<KernelUse> kernels = kernels_within(recipe_, *backend, *this);
  leave_out_known(kernels, known(*backend));
  measure(std::move(kernels), *backend, part);
}

bool FirstTimes::measure(std::vector<KernelUse> kernels, Backend& backend, double part) {
  std::erase_if(kernels, [&](const KernelUse& use) { return !has_room(use, backend); });
  if (kernels.empty() || !may_measure()) return false;
  const auto start = std::chrono::steady_clock::now();
  const CostTable times = timer_(kernels, backend, std::min(left_, std::max(kLeast, part * left_)));
  try {
    if (!times.empty()) add_costs(file_, backend.machine(), times);
  } catch (const UserError&) {  // nowhere to keep them: the plan goes by its model
    left_ = 0;
    return false;
  }
  forget_resident_peak();  // what is said of a run is of the run
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  spent_ += seconds;
  left_ -= seconds;
  if (left_ < kLeast) left_ = 0;
  kernels_ += static_cast<int>(times.size());
  return !times.empty();
}

}  // namespace thimble
