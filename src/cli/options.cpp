#include "cli/options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/io/json.h"
#include "base/number/bytes.h"
#include "cli/console.h"
#include "cli/progress.h"
#include "cli/trained.h"
#include "comm/world.h"
#include "data/dataset.h"
#include "request/memory_limit.h"

namespace thimble {
namespace {

std::string help_of(const ListedField& listed) {
  const bool said = listed.usual.empty() || !listed.models.empty();
  if (listed.field.kind() == Field::Kind::toggle || said) return listed.help;
  return fmt::format("{} ({})", listed.help, listed.usual);
}

// That no plan fits, in the form asked for.
void report(const Refusal& refusal, bool json) {
  if (json) {
    nlohmann::json object = {{"infeasible", true}, {"why", refusal.least.why}};
    object[refusal.searched ? "min_bytes" : "enough_bytes"] = refusal.least.min_bytes.count;
    if (refusal.allow) {
      nlohmann::json tiers = nlohmann::json::object();
      for (const TierFloor& floor : refusal.floors) {
        tiers[std::string(name_of(floor.tier))] = {{"min_bytes", floor.least.count},
                                                   {"flags", floor.flags}};
      }
      object.update({{"allow", name_of(*refusal.allow)},
                     {"tiers", tiers},
                     {"unlock", refusal.unlock},
                     {"bound_bytes", refusal.bound.count},
                     {"proved", refusal.proved}});
    }
    print_json(object);
  }
  say("thimble: {}\n", refusal.sentence);
  if (!refusal.allow) return;
  for (const TierFloor& floor : refusal.floors) {
    say("  {:<12} at least {:>10} ({} bytes){}{}\n", name_of(floor.tier), to_string(floor.least),
        floor.least.count, floor.flags.empty() ? "" : ": ", floor.flags);
  }
  if (!refusal.unlock.empty()) say("  to go further down: {}\n", fmt::join(refusal.unlock, "; "));
  say("  or give more --memory\n");
}

void put_device(const TrainedFlags& flags, Recipe& recipe) {
  if (!flags.device.empty()) recipe.device = flags.device;
  if (flags.threads >= 0) recipe.on.threads = flags.threads;
}

// How a size without its B was read: some programs mean powers of 1000 by it. Empty: it has one.
std::string note_on_size(const Request& request) {
  const auto memory = request.explicit_settings.find("memory");
  if (memory == request.explicit_settings.end() || !memory->second.is_string()) return "";
  const std::string text = memory->second.get<std::string>();
  if (text.empty() || std::string_view("KMGT").find(text.back()) == std::string_view::npos)
    return "";
  return fmt::format("--memory {0} is taken as {0}iB, {1} bytes", text, parse_bytes(text).count);
}

void say_choices(const SelectionReport& fit, const PlannedTraining& training) {
  say("fit: {} in {} ({}); without a budget: {}, {:.1f} ms a step\n",
      training.full().model.options.name, to_string(*training.recipe.memory),
      name_of(training.tier), to_string(fit.plain_arena), fit.plain_ms);
  for (const TechniqueGain& share : fit.gains) {
    const bool saves = share.saved >= Bytes();
    say("  {:<56}{} {:>9}, {:+.1f} ms  ({}; {})\n", share.what, saves ? "saves" : "takes",
        to_string(saves ? share.saved : Bytes() - share.saved), share.ms_paid, share.tier,
        share.flags);
  }
  if (fit.gains.empty()) say("  nothing has to be done for it\n");
}

}  // namespace

void add_json_flag(CLI::App& command, bool& json) {
  command.add_flag("--json", json, "One JSON object on stdout");
}

void TrainedFlags::add_to(CLI::App& command, const char* folder) {
  add_value(command, "--data-dir", data_dir, "FOLDER", folder);
  add_value(command, "--device", device, "NAME", "cpu or cuda (the run's)");
  add_whole(command, "--threads", threads, 0, 1024, "Threads (the run's)");
  add_json_flag(command, json);
}

Recipe TrainedFlags::recipe_of(const std::string& checkpoint) const {
  Recipe recipe = recipe_in(checkpoint);
  put_device(*this, recipe);
  return recipe;
}

TextModel text_model_of(const TrainedFlags& flags) {
  TextModel model = text_model(flags.run);
  put_device(flags, model.recipe);
  return model;
}

void RecipeFlags::add_model_to(CLI::App& command) {
  add_argument(command, "model", model,
               "A name from `thimble list models`, or a recipe file (.toml)");
  add_json_flag(command, json);
}

void RecipeFlags::add_to(CLI::App& command, bool training,
                         const std::vector<std::string>& without) {
  const auto later = [](const CLI::results_t&) { return true; };  // overrides() looks
  for (const ListedField& listed : listed_fields()) {
    const Field& field = listed.field;
    const About& about = field.about();
    const bool wanted = about.flag && (training || !about.training);
    if (!wanted || std::ranges::find(without, field.name()) != without.end()) continue;
    const std::string flag = "--" + field.name();
    CLI::Option* option = nullptr;
    if (field.kind() == Field::Kind::toggle) {
      option = command.add_flag(flag)->description(help_of(listed));
      toggles_.push_back(field.name());
    } else {
      option = command.add_option(flag, later, help_of(listed))->type_name(about.placeholder);
      option->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
      if (field.kind() == Field::Kind::list) {
        option->expected(-1)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
        if (about.placeholder == "GLOB") option->allow_extra_args(false);  // the model may follow
      } else if (about.placeholder == "H,W,C") {
        option->delimiter(',')->expected(1, 3)->multi_option_policy(
            CLI::MultiOptionPolicy::TakeAll);
      }
    }
    option->group(std::string(field.group()));
    options_.emplace_back(field.name(), option);
  }
}

void RecipeFlags::add_search_to(CLI::App& command) {
  const auto later = [](const CLI::results_t&) { return true; };
  CLI::Option* option =
      command.add_option(fmt::format("--{}", kSearchSeconds), later,
                         fmt::format("How long to look for plans, in seconds of one core ({:g})",
                                     Request().search_seconds));
  option->type_name("S")->group("Memory");
  options_.emplace_back(kSearchSeconds, option);
}

Settings RecipeFlags::overrides() const {
  Settings settings;
  for (const auto& [name, option] : options_) {
    if (option->count() == 0) continue;
    const std::vector<std::string>& words = option->results();
    const bool toggle = std::ranges::find(toggles_, name) != toggles_.end();
    if (toggle) {
      settings[name] = words.empty() ? "true" : words.back();
    } else if (option->get_multi_option_policy() == CLI::MultiOptionPolicy::TakeAll) {
      settings[name] = fmt::format("{}", fmt::join(words, ","));
    } else {
      settings[name] = words.empty() ? "" : words.back();
    }
  }
  return settings;
}

void say_note(const std::string& file, const std::string& note) {
  if (!note.empty()) say("{}: {}\n", file, note);
}

CLI::Validator number_between(double least, double most) {
  const auto check = [least, most](const std::string& text) -> std::string {
    double value = 0;
    const bool inside = CLI::detail::lexical_cast(text, value) && value >= least && value <= most;
    return inside ? "" : fmt::format("Value {} not in range {} to {}", text, least, most);
  };
  return {check, fmt::format("[{} - {}]", least, most), "NUMBER"};
}

Request requested(const std::string& model, const Settings& overrides, World* world, bool quiet) {
  user_check(find_dataset(model, "") == nullptr,
             "'{0}' is a data set; write a model, and --data {0} behind it", model);
  Request request = read_request(model, overrides, world);
  const std::string size = note_on_size(request);
  if (!size.empty()) request.notes.push_back(size);
  for (const std::string& sentence : request.notes) {
    if (launched_rank() == 0 && !quiet) say("thimble: note: {}\n", sentence);
  }
  return request;
}

std::optional<PlannedTraining> plan_or_explain(const Recipe& recipe, bool json) {
  auto planned = plan_training(recipe);
  if (auto* ready = std::get_if<PlannedTraining>(&planned)) return std::move(*ready);
  if (launched_rank() == 0) report(refusal_of(recipe, std::get<Infeasible>(planned)), json);
  return std::nullopt;
}

std::optional<PlannedGeneration> plan_text_or_explain(const Recipe& recipe,
                                                      const TextGeneration& asked, bool json) {
  check(recipe);
  Request request = {.recipe = recipe};
  auto machine = Machine::open(recipe);
  settle_budget(request, *machine, nullptr, json);
  auto planned = plan_text_generation(request.recipe, std::move(machine), asked);
  if (auto* none = std::get_if<Infeasible>(&planned)) {
    std::string sentence = none->why;
    report({.least = std::move(*none), .sentence = std::move(sentence)}, json);
    return std::nullopt;
  }
  auto& ready = std::get<PlannedGeneration>(planned);
  if (!ready.note.empty()) say("thimble: note: {}\n", ready.note);
  return std::move(ready);
}

void settle_budget(Request& request, Machine& machine, World* world, bool quiet) {
  const auto limit = resolve_budget(request, machine.backend(), world);
  if (!limit || quiet || (world != nullptr && !world->first())) return;
  const std::string shared =
      world != nullptr ? fmt::format(" for each of {} ranks", world->size()) : "";
  say("--memory auto: {} ({} bytes){}: {} is {}, of which {} stay free\n", to_string(limit->budget),
      limit->budget.count, shared, limit->from, to_string(limit->available),
      to_string(limit->margin));
}

std::optional<PlannedTraining> plan_asked(Request& request, const std::shared_ptr<Machine>& machine,
                                          bool json, World* world, bool quiet) {
  settle_budget(request, *machine, world, quiet);
  const bool speaks = world == nullptr || world->first();
  SearchLimits limits = limits_within(request.search_seconds);
  std::optional<SearchDisplay> display;
  if (speaks && !json && !quiet) display.emplace(request.asked_at);
  const std::function<void()> watch = [&] { display->show(); };
  if (display) limits.watch = &watch;
  auto planned = choose_and_plan(request.recipe, request.explicit_settings, machine, limits);
  display.reset();
  if (machine->profiled_kernels() > 0 && !quiet) {
    say("profiled {} kernel{} in {:.1f} s (saved in {}; skip with `--costs modelled`)\n",
        machine->profiled_kernels(), machine->profiled_kernels() == 1 ? "" : "s",
        machine->profiling_seconds(), machine->profiling_file());
  }
  if (const auto* const refusal = std::get_if<Refusal>(&planned)) {
    if (speaks) report(*refusal, json);
    return std::nullopt;
  }
  auto& ready = std::get<PlannedTraining>(planned);
  say_what_it_took(request, ready);
  if (!json && !quiet && speaks && ready.report) say_choices(*ready.report, ready);
  return std::move(ready);
}

void print_json(const nlohmann::json& object) { print("{}\n", json_text(object, 2)); }

}  // namespace thimble
