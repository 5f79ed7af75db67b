#include "optimality/check.h"

#include <algorithm>
#include <random>

#include "base/error.h"
#include "plan/make_plan.h"
#include "plan/verify/verify_plan.h"

namespace thimble {
namespace {

// Every task once, in order; before each, with some probability, an earlier one again, and what
// makes its inputs before that.
Runs random_runs(const Problem& problem, std::mt19937& random) {
  Runs runs;
  const auto chance = [&](double p) { return std::uniform_real_distribution<>(0, 1)(random) < p; };
  const double often = 0.1 * static_cast<double>(1 + random() % 5);
  const auto repeat = [&](auto&& self, int value) -> void {
    const int maker = problem.values[static_cast<size_t>(value)].maker;
    if (maker < 0 || !problem.tasks[static_cast<size_t>(maker)].repeatable || !chance(often))
      return;
    for (const int read : problem.tasks[static_cast<size_t>(maker)].reads) self(self, read);
    runs.push_back(maker);
  };
  for (int t = 0; t < problem.size(); ++t) {
    for (const int read : problem.tasks[static_cast<size_t>(t)].reads) repeat(repeat, read);
    runs.push_back(t);
  }
  return runs;
}

// By run: the values whose copy is read or made here and not read again.
std::vector<std::vector<bool>> ends_of(const Problem& problem, const Runs& runs) {
  std::vector<std::vector<bool>> ends(runs.size(), std::vector<bool>(problem.values.size(), false));
  std::vector<bool> wanted(problem.values.size());  // by a later run, of the copy that is there now
  for (size_t v = 0; v < wanted.size(); ++v) wanted[v] = problem.values[v].result;
  for (size_t r = runs.size(); r-- > 0;) {
    const Problem::Task& task = problem.tasks[static_cast<size_t>(runs[r])];
    for (const int v : task.makes) {
      ends[r][static_cast<size_t>(v)] = !wanted[static_cast<size_t>(v)];
      wanted[static_cast<size_t>(v)] = false;
    }
    for (const int v : task.reads) {
      ends[r][static_cast<size_t>(v)] = !wanted[static_cast<size_t>(v)];
      wanted[static_cast<size_t>(v)] = true;
    }
  }
  return ends;
}

}  // namespace

Bytes live_peak_of(const Problem& problem, const Runs& runs) {
  const auto ends = ends_of(problem, runs);
  int64_t live = problem.persistent;
  for (const Problem::Value& value : problem.values) live += value.maker < 0 ? value.bytes : 0;
  int64_t peak = live;
  for (size_t r = 0; r < runs.size(); ++r) {
    const Problem::Task& task = problem.tasks[static_cast<size_t>(runs[r])];
    int64_t made = 0, taken_over = 0, ended = 0;
    std::vector<int> taken;
    for (const int v : task.makes) {
      made += problem.values[static_cast<size_t>(v)].bytes;
      const auto over = std::find_if(task.takeovers.begin(), task.takeovers.end(), [&](auto& each) {
        return each.to == v && ends[r][static_cast<size_t>(each.from)] &&
               std::count(taken.begin(), taken.end(), each.from) == 0;
      });
      if (over == task.takeovers.end()) continue;
      taken.push_back(over->from);
      taken_over += problem.values[static_cast<size_t>(v)].bytes;
    }
    for (size_t v = 0; v < problem.values.size(); ++v) {
      if (ends[r][v]) ended += problem.values[v].bytes;
    }
    peak = std::max(peak, live + made + task.scratch - taken_over);
    live += made - ended;
  }
  return Bytes(peak);
}

void check_memory_model(const OptimalityCase& each, int trials) {
  const Problem problem = make_problem(each.graph, each.costs);
  std::mt19937 random(1);
  for (int i = 0; i < trials; ++i) {
    const Runs runs = random_runs(problem, random);
    const Plan plan =
        lay_out({.graph = each.graph, .costs = each.costs}, to_schedule(problem, runs));
    verify_plan(each.graph, each.costs, plan);
    const Bytes peak = live_peak_of(problem, runs);
    internal_check(peak == plan.peak_live,
                   fmt::format("{}, trial {}: the model holds {} bytes, the plan {}", each.name, i,
                               peak.count, plan.peak_live.count));
  }
}

}  // namespace thimble
