#include "fit/measured_choice.h"

#include <algorithm>
#include <ctime>
#include <limits>
#include <map>
#include <set>
#include <unordered_map>

#include "execute/costs.h"

namespace thimble {
namespace {

double processor_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

constexpr size_t kAtOnce = 4;  // steps that are measured before a choice is made again

// What could be fastest, by what it cannot be below; no more than `limit`.
std::vector<const FitStep*> most_promising(Fit& fit, Bytes budget, double limit) {
  std::vector<std::pair<double, const FitStep*>> sorted;
  for (const auto& step : fit.search(fit.allow()).steps()) {
    const double bound = step->least_seconds(budget);
    if (bound <= limit) sorted.emplace_back(bound, step.get());
  }
  std::ranges::stable_sort(sorted, {}, [](const auto& entry) { return entry.first; });
  std::vector<const FitStep*> steps;
  for (const auto& [bound, step] : sorted) {
    if (steps.size() < kAtOnce) steps.push_back(step);
  }
  return steps;
}

// Of all of them, each once; those of the first step first.
std::vector<KernelUse> unmeasured_of(const std::vector<const FitStep*>& steps, Backend& backend,
                                     const FirstTimes& times) {
  std::vector<KernelUse> kernels;
  std::set<std::string> taken;
  for (const FitStep* step : steps) {
    MeasuredPart measured = measured_part(*step, backend, times);
    step->let_go();
    if (measured.part >= kMeasured) continue;
    for (KernelUse& use : measured.unmeasured) {
      if (taken.insert(use.key).second) kernels.push_back(std::move(use));
    }
  }
  return kernels;
}

// The choice first, then what comes close.
std::vector<const FitStep*> chosen(Fit& fit, Bytes budget, const FirstTimes& times) {
  const auto pick = fit.choose(budget);
  if (!pick || measured_part(*pick->step, fit.backend(), times).part >= kMeasured) return {};
  std::vector<const FitStep*> steps = most_promising(fit, budget, kNearTie * pick->seconds);
  std::erase(steps, pick->step);
  steps.insert(steps.begin(), pick->step);
  return steps;
}

}  // namespace

MeasuredPart measured_part(const FitStep& step, Backend& backend, const FirstTimes& times) {
  const CostTable known = times.known(backend);
  const Graph& graph = step.graph();
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
    const int runs = graph.nodes[n].phase == Phase::each ? step.request().microbatches : 1;
    const double seconds = step.costs().nodes[n].seconds * runs;
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
    return seconds_of(use) == 0 || !times.has_room(use, backend);
  });
  for (const KernelUse& use : part.unmeasured) {
    if (tasks.insert(task_of_key(use.key)).second) left += seconds_of(use);
  }
  std::ranges::stable_sort(part.unmeasured, std::greater(), seconds_of);
  part.part = all > 0 ? 1 - left / all : 1;
  return part;
}

void measure_choice(Fit& fit, Bytes budget, FirstTimes& times) {
  constexpr double kSearching = 8;  // processor seconds: none begins that would end later
  constexpr double kAnyTime = std::numeric_limits<double>::max();
  double searching = 0, longest = 0;
  // What looks best takes no planner to find; the choice does.
  for (const bool planned : {false, true}) {
    while (times.may_measure() && searching + longest <= kSearching) {
      const double began = processor_seconds();
      const auto steps =
          planned ? chosen(fit, budget, times) : most_promising(fit, budget, kAnyTime);
      std::vector<KernelUse> kernels = unmeasured_of(steps, fit.backend(), times);
      const double took = processor_seconds() - began;
      searching += took;
      longest = std::max(longest, took);
      if (kernels.empty() || !times.measure(std::move(kernels), fit.backend(), 0.5)) break;
      fit.forget_times();
    }
  }
}

}  // namespace thimble
