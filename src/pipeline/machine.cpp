#include "pipeline/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <unordered_set>

#include "base/error.h"
#include "base/host/process.h"
#include "base/io/file.h"
#include "execute/costs.h"
#include "execute/costs_path.h"
#include "pipeline/profiling_limits.h"
#include "pipeline/step.h"

namespace thimble {
namespace {

bool is_forbidden() {
  const char* const word = std::getenv("THIMBLE_CALIBRATE");
  return word != nullptr && std::string_view(word) == "off";
}

// None: there is no such file.
std::optional<std::filesystem::file_time_type> written_at(const std::string& path) {
  std::error_code unknown;
  const auto time = std::filesystem::last_write_time(path, unknown);
  return unknown ? std::nullopt : std::optional(time);
}

}  // namespace

Profiling usual_profiling(const Recipe& recipe) {
  if (recipe.costs != kAutomaticCosts || is_forbidden()) return {};
  return {
      .file = usual_costs_path(recipe.device),
      .seconds = kProfilingLimits.seconds,
      .timer = [](const std::vector<KernelUse>& kernels, Backend& on, double seconds, Bytes room) {
        return calibrate(kernels, on, {.seconds = seconds, .date = today(), .room = room});
      }};
}

std::shared_ptr<Machine> Machine::open(const Recipe& recipe, Profiling profiling) {
  return std::make_shared<Machine>(make_backend(recipe.device, recipe.on),
                                   costs_to_read(recipe.costs, recipe.device),
                                   std::move(profiling));
}

Machine::Machine(std::unique_ptr<Backend> backend, std::string costs_file, Profiling profiling)
    : backend_(std::move(backend)),
      name_(backend_->machine()),
      costs_file_(std::move(costs_file)),
      profiling_(std::move(profiling)),
      seconds_left_(backend_->runs() && !profiling_.file.empty() ? profiling_.seconds : 0) {}

void Machine::read() {
  read_at_ = written_at(costs_file_);
  known_ = read_costs(costs_file_);
}

const CostTable& Machine::times() {
  if (!known_ && !costs_file_.empty()) read();
  if (!known_) known_.emplace();
  return (*known_)[name_];
}

Costs Machine::price(const Recipe& recipe, const Graph& graph) {
  const CostTable& table = times();
  Costs costs = gather_costs(graph, *backend_, table);
  costs.share = usual_share_;
  const auto step = table.lower_bound(kWholeStep);
  if (step != table.end() && op_of_key(step->first) == kWholeStep) {
    const auto whole = table.find(whole_step_key(recipe, *backend_));
    if (whole != table.end() && whole->second.modelled > 0) {
      costs.share = whole->second.seconds / whole->second.modelled;
    }
  }
  for (NodeCost& node : costs.nodes) node.seconds *= costs.share;
  if (!recipe.ranks.several()) return costs;
  const Interconnect link = interconnect_of(recipe);
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const Traffic traffic = traffic_of(graph, make_id<NodeId>(n));
    costs.nodes[n].seconds += link.seconds(traffic.messages, traffic.bytes);
  }
  costs.source += fmt::format(", {} ranks over {}", recipe.ranks.count, link.name);
  return costs;
}

Interconnect Machine::interconnect_of(const Recipe& recipe) {
  if (!recipe.interconnect.empty()) return parse_interconnect(recipe.interconnect);
  const CostTable& table = times();
  const auto latency = table.find(link_key(kLinkLatency, recipe.ranks.count));
  const auto byte = table.find(link_key(kLinkByte, recipe.ranks.count));
  if (latency == table.end() || byte == table.end()) return parse_interconnect("memory");
  return {"measured", latency->second.seconds, 1 / byte->second.seconds};
}

bool Machine::keep(const CostTable& added) {
  const std::string& path = profiling_.file;
  try {
    times();
    if (written_at(path) != read_at_) {  // by another process: what it timed counts, too
      for (auto& [machine, table] : read_costs(path)) (*known_)[machine].merge(table);
    }
    CostFile grown = *known_;
    for (const auto& [key, time] : added) grown[name_][key] = time;
    write_costs(path, grown);
    known_ = std::move(grown);
    read_at_ = written_at(path);
    return true;
  } catch (const UserError&) {  // nowhere to keep them: the plan goes by its model
    return false;
  }
}

bool Machine::profile(std::vector<KernelUse> kernels, double part) {
  const double longest = kProfilingLimits.longest_part * profiling_.seconds;
  std::erase_if(kernels,
                [&](const KernelUse& use) { return !has_room(use) || use.modelled > longest; });
  if (kernels.empty() || !may_profile()) return false;
  const auto start = std::chrono::steady_clock::now();
  const double seconds =
      std::min(seconds_left_, std::max(kProfilingLimits.least_seconds, part * seconds_left_));
  const CostTable added = profiling_.timer(kernels, *backend_, seconds, room_);
  if (!added.empty() && !keep(added)) {
    seconds_left_ = 0;
    return false;
  }
  forget_resident_peak();  // what is said of a run is of the run
  const double spent =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  profiling_seconds_ += spent;
  seconds_left_ -= spent;
  if (seconds_left_ < kProfilingLimits.least_seconds) seconds_left_ = 0;
  profiled_kernels_ += static_cast<int>(added.size());
  generation_ += added.empty() ? 0 : 1;
  return !added.empty();
}

void Machine::keep_kernels_of(std::span<const Step* const> steps) {
  std::unordered_set<Signature, SignatureHash> used;
  for (const Step* step : steps) {
    const Graph& graph = step->model.graph;
    for (size_t n = 0; n < graph.nodes.size(); ++n) {
      used.insert(signature_of(graph, make_id<NodeId>(n)));
    }
  }
  backend_->keep_kernels(used);
}

std::string whole_step_key(const Recipe& recipe, const Backend& backend) {
  return fmt::format("{}({}) by {} streams", kWholeStep, timed_text(completed(recipe, backend)),
                     backend.streams());
}

}  // namespace thimble
