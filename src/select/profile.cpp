#include "select/profile.h"

#include <algorithm>
#include <ctime>
#include <limits>
#include <map>
#include <set>
#include <unordered_map>

#include "base/host/available_memory.h"
#include "execute/costs.h"
#include "pipeline/profiling_limits.h"
#include "plan/make_plan.h"
#include "plan/schedule/recompute.h"

namespace thimble {
namespace {

double processor_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

// Memory that timing may take: what is planned may be for another machine.
Bytes free_room() {
  const auto available = available_memory("");
  if (!available) return Bytes(INT64_MAX);
  return Bytes(static_cast<int64_t>(kProfilingLimits.free_part *
                                    static_cast<double>(available->bytes.count)));
}

// The kernels of the step; of a tight budget, those of microbatches that leave room for most of them.
std::vector<KernelUse> kernels_within(const Step& requested) {
  Machine& machine = *requested.machine;
  Recipe recipe = requested.recipe;
  std::vector<int64_t> smaller;
  if (recipe.tokens == 0) smaller = rows_to_try(microbatches_of(recipe).rows, 1);
  std::vector<KernelUse> kernels = kernels_of(requested.model.graph, machine.backend());
  for (size_t i = 0;; ++i) {
    const auto all = static_cast<double>(kernels.size());
    std::erase_if(kernels, [&](const KernelUse& use) { return !machine.has_room(use); });
    if (static_cast<double>(kernels.size()) >= kProfilingLimits.with_room * all ||
        i == smaller.size())
      return kernels;
    recipe.microbatch = smaller[i];
    kernels = kernels_of(make_graph(recipe, largest_shape(recipe)).model.graph, machine.backend());
  }
}

// Leaves out what was measured before; all of it, where that is enough to go by: what is not known is
// scaled like what is, which one odd kernel that another net has too would spoil.
void leave_out_known(std::vector<KernelUse>& kernels, const CostTable& table) {
  double all = 0, known = 0;
  for (const KernelUse& use : kernels) {
    const double seconds = use.modelled * use.nodes;
    all += seconds;
    if (table.contains(use.key)) known += seconds;
  }
  std::erase_if(kernels, [&](const KernelUse& use) {
    return known >= kProfilingLimits.enough_known * all || table.contains(use.key);
  });
}

// The options with the best lower bounds, up to `limit`.
std::vector<StepOption*> most_promising(TechniqueSelector& selector, Bytes budget, double limit) {
  std::vector<std::pair<double, StepOption*>> sorted;
  for (const auto& option : selector.options(selector.allow())) {
    const double bound = option->least_seconds(budget);
    if (bound <= limit) sorted.emplace_back(bound, option.get());
  }
  std::ranges::stable_sort(sorted, {}, [](const auto& entry) { return entry.first; });
  std::vector<StepOption*> options;
  for (const auto& [bound, option] : sorted) {
    if (options.size() < kProfilingLimits.at_once) options.push_back(option);
  }
  return options;
}

// Of all of them, each once; those of the first option first.
std::vector<KernelUse> unmeasured_of(const std::vector<StepOption*>& options) {
  std::vector<KernelUse> kernels;
  std::set<std::string> taken;
  for (StepOption* option : options) {
    MeasuredPart measured = measured_part(option->step());
    option->release_graph();
    if (measured.part >= kProfilingLimits.measured) continue;
    for (KernelUse& use : measured.unmeasured) {
      if (taken.insert(use.key).second) kernels.push_back(std::move(use));
    }
  }
  return kernels;
}

// The choice first, then what comes close.
std::vector<StepOption*> chosen(TechniqueSelector& selector, Bytes budget) {
  const auto pick = selector.choose(budget);
  if (!pick) return {};
  StepOption* const option = &selector.option(*pick, selector.allow());
  if (measured_part(option->step()).part >= kProfilingLimits.measured) return {};
  std::vector<StepOption*> options = most_promising(selector, budget, kNearTie * pick->seconds);
  std::erase(options, option);
  options.insert(options.begin(), option);
  return options;
}

}  // namespace

void profile_requested(Step& requested, std::optional<Bytes> budget, double part) {
  Machine& machine = *requested.machine;
  if (!machine.may_profile()) return;
  if (!machine.backend().has_device_memory()) {
    const PlanRequest request = requested.request();
    const Bytes arena = budget && *budget > kLeastMemory
                            ? *budget
                            : cost_of(request, schedule_without_recompute(request)).live_peak;
    machine.set_room(std::min(arena, free_room()));
  }
  std::vector<KernelUse> kernels = kernels_within(requested);
  leave_out_known(kernels, machine.times());
  if (machine.profile(std::move(kernels), part)) requested.price();
}

MeasuredPart measured_part(const Step& step) {
  Machine& machine = *step.machine;
  Backend& backend = machine.backend();
  const CostTable& known = machine.times();
  const Graph& graph = step.model.graph;
  const int microbatches = step.request().microbatches;
  // By task: whatever runs it.
  std::unordered_map<Signature, std::string, SignatureHash> unmeasured_task;
  std::map<std::string, double, std::less<>> unmeasured;
  double all = 0, left = 0;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const Signature signature = signature_of(graph, make_id<NodeId>(n));
    if (signature.op->view) continue;
    const auto [task, fresh] = unmeasured_task.try_emplace(signature);
    if (fresh) {
      Kernel& kernel = backend.kernel(signature);
      if (use_fastest(signature, kernel, known) == nullptr) {
        task->second = task_of_key(kernel_key(signature, kernel));
      }
    }
    const int runs = graph.nodes[n].phase == Phase::per_microbatch ? microbatches : 1;
    const double seconds = step.costs.nodes[n].seconds * runs;
    all += seconds;
    if (!task->second.empty()) unmeasured[task->second] += seconds;
  }
  MeasuredPart part;
  if (unmeasured.empty()) return part;
  const auto seconds_of = [&](const KernelUse& use) {
    const auto found = unmeasured.find(task_of_key(use.key));
    return found == unmeasured.end() ? 0 : found->second;
  };
  std::set<std::string_view> tasks;
  part.unmeasured = kernels_of(graph, backend);
  std::erase_if(part.unmeasured, [&](const KernelUse& use) {
    return seconds_of(use) == 0 || !machine.has_room(use);
  });
  for (const KernelUse& use : part.unmeasured) {
    if (tasks.insert(task_of_key(use.key)).second) left += seconds_of(use);
  }
  std::ranges::stable_sort(part.unmeasured, std::greater(), seconds_of);
  part.part = all > 0 ? 1 - left / all : 1;
  return part;
}

void refine_with_profile(TechniqueSelector& selector, Bytes budget, Machine& machine) {
  constexpr double kAnyTime = std::numeric_limits<double>::max();
  double searching = 0, longest = 0;
  // The best bounds take no planner to find, and the selection does.
  for (const bool planned : {false, true}) {
    while (machine.may_profile() && searching + longest <= kProfilingLimits.processor_seconds) {
      const double began = processor_seconds();
      const auto options =
          planned ? chosen(selector, budget) : most_promising(selector, budget, kAnyTime);
      std::vector<KernelUse> kernels = unmeasured_of(options);
      const double took = processor_seconds() - began;
      searching += took;
      longest = std::max(longest, took);
      if (kernels.empty() || !machine.profile(std::move(kernels), kProfilingLimits.round_part))
        break;
      selector.price_again();
    }
  }
}

}  // namespace thimble
