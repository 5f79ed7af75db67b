#include "fit/measured_choice.h"

#include <algorithm>
#include <ctime>
#include <map>
#include <set>
#include <unordered_map>

#include "execute/costs.h"

namespace thimble {
namespace {

double processor_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

// The choice first, then what could be as fast, by what it cannot be below.
std::vector<const FitStep*> with_near_ties(Fit& fit, const FitSearch::Pick& pick, Bytes budget) {
  constexpr size_t kTies = 3;
  std::vector<std::pair<double, const FitStep*>> ties;
  for (const auto& step : fit.search(fit.allow()).steps()) {
    const double bound = step->least_seconds(budget);
    if (step.get() != pick.step && bound <= kNearTie * pick.seconds) {
      ties.emplace_back(bound, step.get());
    }
  }
  std::ranges::stable_sort(ties, {}, [](const auto& tie) { return tie.first; });
  std::vector<const FitStep*> steps = {pick.step};
  for (const auto& [bound, step] : ties) {
    if (steps.size() <= kTies) steps.push_back(step);
  }
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
  double searching = 0, longest = 0;
  while (times.may_measure()) {
    const double began = processor_seconds();
    const auto pick = fit.choose(budget);
    const double took = processor_seconds() - began;
    searching += took;
    longest = std::max(longest, took);
    if (!pick || searching + longest > kSearching) return;
    std::vector<KernelUse> kernels;
    std::set<std::string> taken;
    for (const FitStep* step : with_near_ties(fit, *pick, budget)) {
      MeasuredPart measured = measured_part(*step, fit.backend(), times);
      if (step == pick->step && measured.part >= kMeasured) return;
      for (KernelUse& use : measured.unmeasured) {
        if (taken.insert(use.key).second) kernels.push_back(std::move(use));
      }
      if (step != pick->step) step->let_go();
    }
    if (!times.measure(std::move(kernels), fit.backend(), 0.5)) return;
    fit.forget_times();
  }
}

}  // namespace thimble
