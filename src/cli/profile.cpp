// thimble profile: what each technique saves, on paper and planned; then a few steps, with what was
// measured beside what was predicted.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/host/process.h"
#include "cli/console.h"
#include "cli/options.h"
#include "execute/measure.h"
#include "report/plan_report.h"
#include "survey/techniques.h"
#include "train/trainer.h"
#include "weights/initialize.h"

namespace thimble {
namespace {

struct ProfileFlags {
  RecipeFlags recipe;
  int steps = 3;
};

struct KindTime {
  int count = 0;
  double predicted = 0;
  double measured = 0;
};

constexpr std::byte kCanary{0xA5};

// Calls body(mapping of a piece of the arena), from the last piece to the first, until it returns
// false.
template <class Body>
void for_each_piece(Backend& backend, Memory& arena, HostMapping::Use use, const Body& body) {
  constexpr int64_t kPiece = 64 << 20;
  for (int64_t end = arena.size().count; end > 0;) {
    const int64_t begin = std::max<int64_t>(0, end - kPiece);
    if (!body(begin, HostMapping(backend, arena.base() + begin, Bytes(end - begin), use))) return;
    end = begin;
  }
}

void fill_with_canaries(Backend& backend, Memory& arena) {
  for_each_piece(backend, arena, HostMapping::Use::write, [](int64_t, const HostMapping& piece) {
    std::ranges::fill(piece.bytes(), kCanary);
    return true;
  });
}

// One past the highest byte of the arena that is not the canary any more, rounded to a buffer.
Bytes highest_written(Backend& backend, Memory& arena) {
  int64_t end = 0;
  for_each_piece(backend, arena, HostMapping::Use::read,
                 [&](int64_t begin, const HostMapping& piece) {
                   const auto bytes = piece.bytes();
                   for (int64_t i = std::ssize(bytes); i > 0 && end == 0; --i) {
                     if (bytes[static_cast<size_t>(i - 1)] != kCanary) end = begin + i;
                   }
                   return end == 0;
                 });
  return align_up(Bytes(end));
}

double total_seconds(TrainingStep& training) {
  double sum = 0;
  for (const TrainingStep::Part& part : training.parts()) sum += part.trace.seconds;
  return sum;
}

// The time of every kind of op in the traced step, all micro-batches together.
std::map<std::string_view, KindTime> times_by_kind(TrainingStep& training) {
  std::map<std::string_view, KindTime> kinds;
  for (const TrainingStep::Part& part : training.parts()) {
    if (part.trace.call_seconds.empty()) continue;  // of another length than the step was
    const Graph& graph = part.model().graph;
    const bool whole = &part == &training.result();
    for (size_t s = 0; s < part.plan().calls.size(); ++s) {
      const NodeId id = part.plan().calls[s].node;
      const bool each = graph[id].phase == Phase::per_microbatch;
      if (!whole && !each) continue;
      const int runs = each ? part.runs : 1;
      KindTime& kind = kinds[graph[id].op->name];
      kind.count += runs;
      // Measured one by one here, so predicted so, too.
      kind.predicted +=
          runs * part.variant().costs.nodes[id.at()].seconds / part.variant().costs.share;
      kind.measured += part.trace.call_seconds[s];
    }
  }
  return kinds;
}

// Measurements of a few steps.
struct Profile {
  double seconds = 1e30;  // the fastest step
  std::map<std::string_view, KindTime> kinds;
  Measurement measured;
  Bytes written;
  Bytes growth;
};

Profile run_steps(int steps, const PlannedTraining& planned, const Feeder& feeder) {
  const Plan& plan = planned.plan();
  const int64_t batch = planned.microbatches.batch;
  user_check(feeder.bucket(0) != nullptr || batch <= feeder.train_count(),
             "a batch of {} is more than the {} training records", batch, feeder.train_count());

  Profile profile;
  const Bytes before = resident_now();
  const std::unique_ptr<Memory> arena = planned.backend().allocate(plan.arena);
  fill_with_canaries(planned.backend(), *arena);
  TrainingStep training(planned, feeder, *arena, planned.recipe.seed);
  initialize(training.program(), planned.recipe.seed);
  feeder.describe(training.program(), planned.full().model);
  for (int step = 0; step < steps; ++step) {
    for (TrainingStep::Part& part : training.parts()) part.trace = {};
    training.run(step, 0.01, true);
    const double seconds = total_seconds(training);
    if (seconds < profile.seconds) profile.kinds = times_by_kind(training);
    profile.seconds = std::min(profile.seconds, seconds);
  }
  profile.measured = measure(training.program());
  profile.measured.arena = training.touched();
  profile.written = highest_written(planned.backend(), *arena);
  profile.growth = resident_peak() - before;
  return profile;
}

void add_to_json(nlohmann::json& json, const Plan& plan, const Profile& profile) {
  const Measurement& measured = profile.measured;
  nlohmann::json by_role;
  for (int r = 0; r < kRoles; ++r) {
    by_role[std::string(name_of(static_cast<Role>(r)))] = {
        {"predicted", plan.peak_by_role[static_cast<size_t>(r)].count},
        {"measured", measured.by_role[static_cast<size_t>(r)].count}};
  }
  json.update({{"measured_arena_bytes", measured.arena.count},
               {"written_arena_bytes", profile.written.count},
               {"measured_peak_live_bytes", measured.peak_live.count},
               {"by_role", by_role},
               {"step_ms", profile.seconds * 1000},
               {"rss_growth_bytes", profile.growth.count},
               {"rss_peak_bytes", resident_peak().count}});
  for (const auto& [name, kind] : profile.kinds) {
    json["ops"][std::string(name)] = {{"count", kind.count},
                                      {"predicted_ms", kind.predicted * 1e3},
                                      {"measured_ms", kind.measured * 1e3}};
  }
}

void print_profile(const PlannedTraining& planned, const Profile& profile, int steps) {
  const Plan& plan = planned.plan();
  print("\n  best of {} steps {:.1f} ms\n\n", steps, profile.seconds * 1e3);
  print("{}", comparison_table(plan, profile.measured.by_role, profile.measured.arena));
  print("  {:<24}{:>32}\n", "highest byte written", profile.written.count);
  print("  {:<24}{:>32}\n\n", "process grew by", profile.growth.count);
  print("  predicted: {:.1f} ms in all ({})\n", plan.predicted_seconds * 1e3,
        planned.full().costs.source);
  print("  {:<32}{:>7}{:>14}{:>14}\n", "op", "runs", "predicted ms", "measured ms");
  std::vector<std::pair<std::string_view, KindTime>> sorted(profile.kinds.begin(),
                                                            profile.kinds.end());
  std::sort(sorted.begin(), sorted.end(),
            [](const auto& a, const auto& b) { return a.second.measured > b.second.measured; });
  for (const auto& [name, kind] : sorted) {
    print("  {:<32}{:>7}{:>14.2f}{:>14.2f}\n", name, kind.count, kind.predicted * 1e3,
          kind.measured * 1e3);
  }
}

int run(const ProfileFlags& flags) {
  Request request = requested(flags.recipe.model, flags.recipe.overrides());
  const bool runs = flags.steps > 0 && device_traits(request.recipe.device).runs;
  const auto data = open_data(request, runs);
  const Recipe as_requested = request.recipe;
  const auto machine = open_machine(request.recipe, request.explicit_settings);
  const auto planned = plan_asked(request, machine, flags.recipe.json);
  if (!planned) return kInfeasible;

  std::optional<Profile> profile;
  if (runs) {
    const auto feeder = std::make_unique<Feeder>(*data, feed_options(as_requested));
    profile = run_steps(flags.steps, *planned, *feeder);
  }
  const TechniqueReport techniques =
      compare_techniques(planned->report ? planned->recipe : as_requested, *planned);
  if (flags.recipe.json) {
    nlohmann::json json = summary_of(*planned);
    json["techniques"] = technique_json(techniques);
    if (profile) add_to_json(json, planned->plan(), *profile);
    print_json(json);
    return kOk;
  }
  print("{}, {}, on {}\n\n{}", planned->full().model.options.name, batch_text(*planned),
        planned->backend().name(), technique_table(techniques));
  if (profile) print_profile(*planned, *profile, flags.steps);
  return kOk;
}

}  // namespace

Command add_profile(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "profile", "What each technique saves; a few steps: predicted against measured");
  auto flags = std::make_shared<ProfileFlags>();
  flags->recipe.add_model_to(*command);
  flags->recipe.add_to(*command, false);
  command->option_defaults()->group("Profile");
  add_whole(*command, "--steps", flags->steps, 0, 1000, "Steps to run (3; 0: only plans)");
  return {command, [flags] { return run(*flags); }};
}

}  // namespace thimble
