// The worth of one threshold of the searches (plan/search/search_limits.h). A net is planned within budgets from the
// arena that keeps everything down to the least, evenly in their logarithm. Its floor and times are printed. Run by
// bench/ablate.py.
//
// usage: bench_limits [--limits NAME=VALUE,...] [--budgets N | --share S] NET [BATCH] ...     bench_limits --list
// `--share 0.25`: within a quarter of what keeping everything takes, beside a time that no plan is below.
#include <fmt/format.h>

#include <cmath>
#include <ctime>
#include <span>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "base/failure.h"
#include "execute/costs.h"
#include "pipeline/training_graph.h"
#include "plan/bytes/least_bytes.h"
#include "plan/search/optimal_planner.h"
#include "support/least_seconds.h"

namespace thimble {
namespace {

double processor_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

// One line: bytes that keep everything, the floor, seconds of search, and the time within each budget as a multiple of
// computing everything once; "-": nothing fits. Budgets reach down to what no plan is below, whatever the limits are.
void print_frontier(const ModelOptions& options, const SearchLimits& limits, int budgets) {
  const Graph graph = make_training_graph(options, parse_optimizer("nesterov")).model.graph;
  const Costs costs = gather_costs(graph, *make_backend("null", 1));
  const PlanRequest request = {.graph = graph, .costs = costs};
  const double began = processor_seconds();
  OptimalPlanner planner(request, limits);
  const SchedulePool::Pick most = planner.choose({}), least = planner.choose(kLeastMemory);
  std::string times;
  const auto all = static_cast<double>(most.arena.count);
  const double ratio = static_cast<double>(least_bytes(graph, costs).all.count) / all;
  for (int i = 1; i <= budgets; ++i) {
    const Bytes budget(static_cast<int64_t>(all * std::pow(ratio, double(i) / budgets)));
    const SchedulePool::Pick pick = planner.choose(budget);
    const bool fits = pick.arena <= budget;
    times += fits ? fmt::format(" {:.5f}", pick.seconds / most.seconds) : " -";
  }
  fmt::print("{} {} {} {} {:.3f}{}\n", options.name, options.batch, most.arena.count,
             least.arena.count, processor_seconds() - began, times);
}

void print_share(const ModelOptions& options, const SearchLimits& limits, double share) {
  const Graph graph = make_training_graph(options, parse_optimizer("nesterov")).model.graph;
  const Costs costs = gather_costs(graph, *make_backend("null", 1));
  const PlanRequest request = {.graph = graph, .costs = costs};
  OptimalPlanner planner(request, limits);
  const SchedulePool::Pick most = planner.choose({});
  const Bytes budget(static_cast<int64_t>(static_cast<double>(most.arena.count) * share));
  const SchedulePool::Pick pick = planner.choose(budget);
  const double bound = least_seconds(graph, costs, {budget}).front();
  fmt::print("{} {}: {} of {} bytes, {:.4f} of the time, no plan below {:.4f}\n", options.name,
             options.batch, pick.arena.count, most.arena.count, pick.seconds / most.seconds,
             bound / most.seconds);
}

int run(std::span<char* const> words) {
  SearchLimits limits;
  int budgets = 16;
  double share = 0;  // 0: budgets
  std::vector<ModelOptions> nets;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string word = words[i];
    const auto next = [&] {
      user_check(i + 1 < words.size(), "{} wants a value", word);
      return std::string(words[++i]);
    };
    if (word == "--list") {
      for (const NamedLimit& limit : named_limits(limits)) {
        fmt::print("{} {:g}\n", limit.name, limit.value);
      }
    } else if (word == "--limits") {
      const std::string all = next();
      for (size_t at = 0; at <= all.size();) {
        const size_t end = std::min(all.find(',', at), all.size());
        set_limit(limits, all.substr(at, end - at));
        at = end + 1;
      }
    } else if (word == "--budgets") {
      budgets = std::stoi(next());
    } else if (word == "--share") {
      share = std::stod(next());
    } else if (!nets.empty() && word.find_first_not_of("0123456789") == std::string::npos) {
      nets.back().batch = std::stoll(word);
    } else {
      nets.push_back({.name = word});
    }
  }
  for (const ModelOptions& net : nets) {
    share > 0 ? print_share(net, limits, share) : print_frontier(net, limits, budgets);
  }
  return 0;
}

}  // namespace
}  // namespace thimble

int main(int count, char** words) {
  try {
    return thimble::run(std::span(words, static_cast<size_t>(count)).subspan(1));
  } catch (...) {
    thimble::explain_failure([](std::string_view why) { fmt::print(stderr, "{}\n", why); });
    return 2;
  }
}
