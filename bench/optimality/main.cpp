// How far is a planner from the best possible? Plans small training steps within budgets between
// the smallest possible and keep_all, and compares the time of a step with the optimum of an
// integer program. The planner must fit addresses into the budget, the program only sums of live
// bytes.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <iostream>
#include <limits>
#include <span>

#include "base/error.h"
#include "optimality/check.h"
#include "optimality/judge.h"
#include "plan/make_plan.h"
#include "plan/verify/verify_plan.h"

namespace thimble {
namespace {

constexpr int kPercents[] = {25, 50, 75};  // of the way from the smallest peak to keep_all
constexpr int kTrials = 100;

struct Options {
  std::string policy = "optimal";
  std::string only;
  std::string cache;
  bool dump = false;
  bool check = false;
  SolverLimits limits;
};

struct Ours {
  double seconds = std::numeric_limits<double>::infinity();  // of a step; infinite: no plan fits
  Bytes arena;  // of the plan, or of the smallest one that does not fit
  double plan_seconds = 0;
};

Ours plan_ours(const OptimalityCase& each, Bytes budget, const std::string& policy) {
  const auto start = std::chrono::steady_clock::now();
  const PlanResult result =
      make_plan({.graph = each.graph, .costs = each.costs, .budget = budget, .policy = policy});
  Ours ours;
  ours.plan_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (const Plan* plan = std::get_if<Plan>(&result)) {
    verify_plan(each.graph, each.costs, *plan);
    ours.seconds = plan->predicted_seconds;
    ours.arena = plan->arena;
  } else {
    ours.arena = std::get<Infeasible>(result).min_bytes;
  }
  return ours;
}

double base_seconds(const OptimalityCase& each) {
  double seconds = 0;
  for (const NodeCost& cost : each.costs.nodes) seconds += cost.seconds;
  return seconds;
}

std::string percent(double ratio) {
  return std::isfinite(ratio) ? fmt::format("{:.2f}", 100 * ratio) : "none";
}

// Ours alone: to be compared from one version of a planner to the next.
void dump(Judge& judge, const std::vector<OptimalityCase>& cases, const Options& options) {
  fmt::print("{:<24}{:>6}{:>8}{:>14}{:>14}{:>12}{:>12}{:>10}\n", "graph", "nodes", "budget",
             "bytes", "arena", "step us", "extra %", "plan ms");
  for (const OptimalityCase& each : cases) {
    for (const int at : kPercents) {
      const Bytes budget = judge.range(each).at(at);
      const Ours ours = plan_ours(each, budget, options.policy);
      fmt::print("{:<24}{:>6}{:>7}%{:>14}{:>14}{:>12.2f}{:>12}{:>10.1f}\n", each.name,
                 each.graph.nodes.size(), at, budget.count, ours.arena.count, 1e6 * ours.seconds,
                 percent(ours.seconds / base_seconds(each) - 1), 1e3 * ours.plan_seconds);
    }
  }
}

double median(std::span<const double> sorted) {
  const size_t half = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

// One line on all cases, and on those with a plan where some have none.
void print_gaps(std::string_view what, std::vector<double> gaps) {
  std::sort(gaps.begin(), gaps.end());
  const auto line = [](std::string_view name, std::span<const double> sorted) {
    if (sorted.empty()) return;
    fmt::print("{:<60} median {:>6} %   worst {:>6} %\n", name, percent(median(sorted)),
               percent(sorted.back()));
  };
  line(what, gaps);
  const size_t all = gaps.size();
  std::erase_if(gaps, [](double gap) { return !std::isfinite(gap); });
  if (gaps.size() < all) line("  where there is a plan", gaps);
}

void compare(Judge& judge, const std::vector<OptimalityCase>& cases, const Options& options) {
  fmt::print(
      "Extra compute in % of a step that computes nothing twice.\n"
      "ilp, bound: the integer program's best and its proof ({}); exact: exhaustive search.\n"
      "gap a: (ours - ilp) / ilp, of total step time; gap b: extra ours - extra ilp;\n"
      "to bound: gap a to the better of both proofs.\n\n",
      solver_version());
  fmt::print(
      "| {:<22}| nodes | budget | {:>9} | {:<10} | {:>6} | {:>7} | {:>7} | {:>7} | {:>7} | "
      "{:>7} | {:>7} | {:>8} |\n",
      "graph", "MiB", "status", "sec", "ilp", "bound", "exact", "ours", "gap a", "gap b",
      "to bound");
  fmt::print(
      "|{:-<23}|{:->6}:|{:->7}:|{:->10}:|{:-<12}|{:->7}:|{:->8}:|{:->8}:|{:->8}:|{:->8}:|{:->8}:|"
      "{:->8}:|{:->9}:|\n",
      "", "", "", "", "", "", "", "", "", "", "", "", "");
  std::vector<double> total, extra, to_bound, to_exact;
  int unproven = 0, unfit = 0;
  for (const OptimalityCase& each : cases) {
    const double base = base_seconds(each);
    const BudgetRange range = judge.range(each);
    for (const int at : kPercents) {
      const Bytes budget = range.at(at);
      const Verdict verdict = judge.verdict(each, budget);
      const Ours ours = plan_ours(each, budget, options.policy);
      const double nothing = std::numeric_limits<double>::infinity();
      const double ilp = verdict.seconds.value_or(nothing);
      const double exact = verdict.exhaustive_seconds.value_or(nothing);
      // Without a solution there is only the proof to compare with.
      const double peer = verdict.seconds.value_or(verdict.bound);
      internal_check(
          ours.seconds >= verdict.exhaustive_seconds.value_or(verdict.bound) * (1 - 1e-9),
          each.name + ": the planner beats the judges, so their model is wrong");
      total.push_back((ours.seconds - peer) / peer);
      extra.push_back((ours.seconds - peer) / base);
      // The search's optimum is a proof too: whatever the program can do, the search can.
      const double bound = std::max(verdict.bound, verdict.exhaustive_seconds.value_or(0));
      to_bound.push_back((ours.seconds - bound) / bound);
      if (verdict.exhaustive_seconds) to_exact.push_back((ours.seconds - exact) / exact);
      unproven += verdict.status != "optimal";
      unfit += !std::isfinite(ours.seconds);
      fmt::print(
          "| {:<22}| {:>5} | {:>5}% | {:>9.2f} | {:<10} | {:>6.1f} | {:>7} | {:>7} | {:>7} | {:>7} "
          "| "
          "{:>7} | {:>7} | {:>8} |\n",
          each.name, each.graph.nodes.size(), at, static_cast<double>(budget.count) / (1 << 20),
          verdict.status, verdict.solver_seconds, percent(ilp / base - 1),
          percent(verdict.bound / base - 1), percent(exact / base - 1),
          percent(ours.seconds / base - 1), percent(total.back()), percent(extra.back()),
          percent(to_bound.back()));
      std::fflush(stdout);
    }
  }
  if (total.empty()) return;
  fmt::print(
      "\n{} graphs, {} cases; {} not proven optimal by the program; in {} the planner found no "
      "plan\n",
      cases.size(), total.size(), unproven, unfit);
  print_gaps("gap a, total step time: (ours - ilp) / ilp", total);
  print_gaps("gap b, extra compute: (extra ours - extra ilp) / base", extra);
  print_gaps("gap a, to the proven bound", to_bound);
  print_gaps("gap a, to the exhaustive search", to_exact);
}

int run(int argc, char** argv) {
  Options options;
  CLI::App app("How far a planner is from the best keep-or-recompute choice");
  app.add_option("--policy", options.policy, "the planner to judge")->capture_default_str();
  app.add_option("--only", options.only, "graphs whose name contains this");
  app.add_option("--ilp-cache", options.cache, "keep the judges' verdicts in this JSON file");
  app.add_option("--time-limit", options.limits.seconds, "seconds per integer program")
      ->capture_default_str();
  app.add_flag("--dump", options.dump, "print the planner's costs alone, solve nothing");
  app.add_flag("--check", options.check,
               "only show that the judges' memory model is the planner's, on random schedules");
  app.add_flag("--verbose", options.limits.verbose, "print the solver's log");
  CLI11_PARSE(app, argc, argv);

  std::vector<OptimalityCase> cases = optimality_cases();
  std::erase_if(cases, [&](const OptimalityCase& each) {
    return each.name.find(options.only) == std::string::npos;
  });
  if (options.check) {
    for (const OptimalityCase& each : cases) check_memory_model(each, kTrials);
    fmt::print("{} graphs, {} schedules each: the peaks are equal to the byte\n", cases.size(),
               kTrials);
    return 0;
  }
  Judge judge(options.cache, options.limits);
  options.dump ? dump(judge, cases, options) : compare(judge, cases, options);
  return 0;
}

}  // namespace
}  // namespace thimble

int main(int argc, char** argv) {
  try {
    return thimble::run(argc, argv);
  } catch (const std::exception& error) {
    std::cerr << "bench_optimality: " << error.what() << '\n';
    return 1;
  }
}
