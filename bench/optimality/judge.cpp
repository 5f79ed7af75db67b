#include "optimality/judge.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <span>

#include "base/error.h"
#include "base/io/sha256.h"
#include "plan/make_plan.h"
#include "plan/verify/verify_plan.h"

namespace thimble {
namespace {

using nlohmann::json;

// Same text, same problem.
std::string fingerprint(const OptimalityCase& each) {
  std::string text = print_graph(each.graph);
  for (const NodeCost& cost : each.costs.nodes) {
    text += fmt::format("{} {}\n", cost.seconds, cost.workspace.count);
  }
  return fmt::format("{} {}", each.name, sha256_hex(std::as_bytes(std::span(text))).substr(0, 16));
}

std::string_view name_of(IntegerSolution::Status status) {
  switch (status) {
    case IntegerSolution::Status::optimal:
      return "optimal";
    case IntegerSolution::Status::time_limit:
      return "time limit";
    default:
      return "infeasible";
  }
}

json to_json(const Verdict& verdict) {
  json j = {{"status", verdict.status},
            {"bound", verdict.bound},
            {"solver_seconds", verdict.solver_seconds},
            {"live", verdict.live.count},
            {"arena", verdict.arena.count}};
  if (verdict.seconds) j["seconds"] = *verdict.seconds;
  if (verdict.exhaustive_seconds) j["exhaustive_seconds"] = *verdict.exhaustive_seconds;
  return j;
}

Verdict verdict_from(const json& j) {
  Verdict verdict{.status = j.at("status"),
                  .bound = j.at("bound"),
                  .solver_seconds = j.at("solver_seconds"),
                  .live = Bytes(j.at("live")),
                  .arena = Bytes(j.at("arena"))};
  if (j.contains("seconds")) verdict.seconds = j.at("seconds").get<double>();
  if (j.contains("exhaustive_seconds")) {
    verdict.exhaustive_seconds = j.at("exhaustive_seconds").get<double>();
  }
  return verdict;
}

// The plan of a judge's solution, after all checks.
Plan checked_plan(const OptimalityCase& each, const Problem& problem, const Runs& runs,
                  double claimed_seconds, Bytes claimed_peak) {
  const Plan plan = lay_out({.graph = each.graph, .costs = each.costs}, to_schedule(problem, runs));
  verify_plan(each.graph, each.costs, plan);
  internal_check(plan.peak_live <= claimed_peak,
                 fmt::format("{}: the solution holds {} bytes of {} allowed", each.name,
                             plan.peak_live.count, claimed_peak.count));
  internal_check(std::abs(plan.predicted_seconds - claimed_seconds) < 1e-6 * claimed_seconds,
                 fmt::format("{}: the solution takes {} s and claims {}", each.name,
                             plan.predicted_seconds, claimed_seconds));
  return plan;
}

}  // namespace

Bytes BudgetRange::at(int percent) const {
  const int64_t count = floor.count + (keep_all.count - floor.count) * percent / 100;
  return Bytes(count / kArenaAlignment * kArenaAlignment);
}

Judge::Judge(std::string cache, SolverLimits limits)
    : cache_(std::move(cache)), limits_(limits), known_(json::object()) {
  if (!cache_.empty() && std::filesystem::exists(cache_))
    known_ = json::parse(std::ifstream(cache_));
}

BudgetRange Judge::range(const OptimalityCase& each) {
  json& entry = known_[fingerprint(each)];
  if (!entry.contains("floor")) {
    const Problem problem = make_problem(each.graph, each.costs);
    const Plan all = std::get<Plan>(make_plan({.graph = each.graph, .costs = each.costs}));
    entry["floor"] = smallest_peak(problem).count;
    entry["keep_all"] = all.peak_live.count;
    save();
  }
  return {Bytes(entry["floor"]), Bytes(entry["keep_all"])};
}

Verdict Judge::verdict(const OptimalityCase& each, Bytes budget) {
  json& verdicts = known_[fingerprint(each)]["verdicts"];
  const std::string key = std::to_string(budget.count);
  if (verdicts.contains(key)) return verdict_from(verdicts[key]);
  const Verdict verdict = solve(each, budget);
  verdicts[key] = to_json(verdict);
  save();
  return verdict;
}

Verdict Judge::solve(const OptimalityCase& each, Bytes budget) const {
  const Problem problem = make_problem(each.graph, each.costs);
  Verdict verdict;
  const SearchResult search = cheapest_runs(problem, budget);
  if (search.feasible) {
    verdict.exhaustive_seconds = seconds_of(problem, search.runs);
    checked_plan(each, problem, search.runs, *verdict.exhaustive_seconds, budget);
  }
  const IntegerSolution solution = solve_integer_program(problem, budget, limits_);
  verdict.status = name_of(solution.status);
  verdict.bound = solution.bound;
  verdict.solver_seconds = solution.solver_seconds;
  if (solution.runs) {
    const Plan plan = checked_plan(each, problem, *solution.runs, solution.seconds, budget);
    verdict.seconds = plan.predicted_seconds;
    verdict.live = plan.peak_live;
    verdict.arena = plan.arena;
    internal_check(verdict.exhaustive_seconds.value_or(0) <= solution.seconds * (1 + 1e-6),
                   each.name + ": the integer program beats the search, which can do all it can");
  }
  return verdict;
}

void Judge::save() const {
  if (cache_.empty()) return;
  std::ofstream(cache_ + ".part") << known_.dump(1) << '\n';
  std::filesystem::rename(cache_ + ".part", cache_);
}

}  // namespace thimble
