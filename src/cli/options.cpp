#include "cli/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/json.h"
#include "cli/console.h"
#include "comm/world.h"
#include "data/dataset.h"
#include "report/plan_report.h"
#include "transform/sparse_weights.h"

namespace thimble {
namespace {

// Which values are kept encoded, and as what.
nlohmann::json encoded_json(const Graph& graph) {
  nlohmann::json json = nlohmann::json::object();
  for (const Encoded& encoded : find_encoded(graph)) {
    json[graph[encoded.value].name] = name_of(encoded.codec);
  }
  return json;
}

std::string help_of(const ListedField& listed) {
  const bool said = listed.usual.empty() || !listed.models.empty();
  if (listed.field.kind() == Field::Kind::toggle || said) return listed.help;
  return fmt::format("{} ({})", listed.help, listed.usual);
}

// REQUIRES: what is typed was read already, by the field itself.
void note(const std::string& sentence) {
  if (launched_rank() == 0) say("thimble: note: {}\n", sentence);
}

// Flags of `train` that say where a run is kept and what it writes: a recipe file may have them.
constexpr std::array<std::string_view, 8> kOfOneRun = {
    "out", "resume", "overwrite", "weights", "export-initial", "export-batches", "times", "losses"};

Settings settings_in_file(const std::string& path, Settings& run) {
  Settings settings = read_recipe_file(path);
  for (const std::string_view name : kOfOneRun) {
    if (auto found = settings.extract(std::string(name))) run.insert(std::move(found));
  }
  try {
    Recipe alone;
    configure(alone, settings);
  } catch (const UserError& error) {
    user_error("recipe '{}': {}", path, error.what());
  }
  return settings;
}

// What the data fix, nobody else can say.
void check_said_of_data(const Asked& asked, const ModelOptions& adopted, std::string_view data) {
  const auto same = [&](const char* field, bool equal, const std::string& is) {
    user_check(equal || !asked.said.contains(field),
               "--{} says nothing with --data {}, where it is {}", field, data, is);
  };
  const Shape& image = adopted.image;
  if (image.rank() == 3) {
    same("image", asked.recipe.model.image == image,
         fmt::format("{},{},{}", image[0], image[1], image[2]));
  }
  same("classes", asked.recipe.model.classes == adopted.classes,
       fmt::format("{}", adopted.classes));
}

// Of batches by tokens, where none were said.
void choose_lengths_for(const Dataset& data, Recipe& recipe) {
  const bool variable = std::ranges::any_of(data.info().fields, &RecordField::variable);
  user_check(recipe.tokens == 0 || variable,
             "--tokens is for records of lengths of their own, and those of '{}' are all alike; "
             "choose --batch",
             data.info().name);
  constexpr int64_t kMostLengths = 13;
  if (recipe.tokens > 0 && recipe.lengths.empty()) {
    recipe.lengths = choose_lengths(data, kMostLengths);
  }
}

}  // namespace

void RecipeFlags::add_model_to(CLI::App& command) {
  command.add_option("model", model, "A name from `thimble list models`, or a recipe file (.toml)")
      ->type_name("")
      ->required();
  command.add_flag("--json", json, "One JSON object on stdout");
}

void RecipeFlags::add_to(CLI::App& command, bool training,
                         const std::vector<std::string>& without) {
  const auto later = [](const CLI::results_t&) { return true; };  // typed() looks
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
        option->expected(-1)->delimiter(',')->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
        if (about.placeholder == "GLOB") option->allow_extra_args(false);  // the model may follow
      } else if (about.placeholder == "H,W,C") {
        option->delimiter(',')->expected(3)->multi_option_policy(CLI::MultiOptionPolicy::Throw);
      }
    }
    option->group(std::string(field.group()));
    options_.emplace_back(field.name(), option);
  }
}

Settings RecipeFlags::typed() const {
  Settings settings;
  for (const auto& [name, option] : options_) {
    if (option->count() == 0) continue;
    const std::vector<std::string>& words = option->results();
    const bool toggle = std::ranges::find(toggles_, name) != toggles_.end();
    if (toggle) {
      settings[name] = words.empty() || words.back() != "false";
    } else if (option->get_delimiter() == ',') {
      settings[name] = words;
    } else {
      settings[name] = words.empty() ? "" : words.back();
    }
  }
  return settings;
}

Asked read_recipe(const std::string& model, const Settings& typed) {
  Asked asked;
  asked.said = typed;
  if (model.ends_with(".toml")) {
    asked.said.merge(settings_in_file(model, asked.run));  // what is typed stays
  } else {
    asked.said["model"] = model;
  }
  asked.said.try_emplace("costs", "auto");
  configure(asked.recipe, asked.said);
  for (const IdleSetting& idle : idle_settings(asked.recipe, typed)) {
    user_check(idle.shrugged_at, "{}", idle.sentence);
    note(idle.sentence);
  }
  Settings of_file = asked.said;
  for (const auto& [name, value] : typed) of_file.erase(name);
  for (const IdleSetting& idle : idle_settings(asked.recipe, of_file)) note(idle.sentence);
  check(asked.recipe);
  return asked;
}

Resolved resolve(const Asked& asked, bool needs_data) {
  Resolved resolved;
  resolved.recipe = asked.recipe;
  resolved.run = asked.run;
  ModelOptions& model = resolved.recipe.model;
  DataSpec& data = resolved.recipe.data;
  if (!needs_data && data.name.empty()) return resolved;
  const ModelFamily& family = find_model_family(model.name);
  ModelOptions usual = model;
  complete_model(usual);
  // An image size that was asked for is made, where no data set was.
  const bool made = model.image.rank() > 0 && family.data == "digits";
  if (data.name.empty()) data.name = made ? "generated" : family.data;
  resolved.dataset = open_dataset(data.name, {.folder = data.folder,
                                              .wanted = family.intake->fields(usual),
                                              .seed = resolved.recipe.seed,
                                              .settings = data.settings});
  const DatasetInfo& info = resolved.dataset->info();
  family.intake->adopt(info.fields, model);
  check_said_of_data(asked, model, info.name);
  choose_lengths_for(*resolved.dataset, resolved.recipe);
  usual = model;
  complete_model(usual);
  check_match(model.name, family.intake->fields(usual), info.name, info.fields);
  return resolved;
}

std::unique_ptr<Feeder> make_feeder(const Resolved& resolved) {
  return std::make_unique<Feeder>(*resolved.dataset, feed_options(resolved.recipe));
}

std::optional<PlannedTraining> plan_or_explain(const Recipe& recipe, bool json) {
  auto planned = plan_training(recipe);
  if (auto* ready = std::get_if<PlannedTraining>(&planned)) return std::move(*ready);
  if (launched_rank() > 0) return std::nullopt;
  const Infeasible& infeasible = std::get<Infeasible>(planned);
  if (json) {
    print_json(
        {{"infeasible", true}, {"min_bytes", infeasible.min_bytes.count}, {"why", infeasible.why}});
  }
  say("thimble: planner {} cannot do with {}: it needs {} ({} bytes); {}; give more --memory, "
      "or try another --planner (`thimble list planners`)\n",
      recipe.planner, to_string(recipe.memory.value_or(Bytes())), to_string(infeasible.min_bytes),
      infeasible.min_bytes.count, infeasible.why);
  return std::nullopt;
}

nlohmann::json summary_of(const PlannedTraining& planned) {
  nlohmann::json summary = plan_summary({.device = planned.backend->name(),
                                         .batch = planned.microbatches.batch,
                                         .microbatch = planned.microbatches.rows,
                                         .tier = name_of(planned.tier),
                                         .plan_seconds = planned.plan_seconds},
                                        planned.graph(), priced_as_a_whole(planned));
  summary["codec"] = to_string(planned.recipe.codec);
  summary["encoded"] = encoded_json(planned.graph());
  for (const VariantShape& shape : token_batches(planned.recipe)) {
    summary["buckets"].push_back({{"rows", shape.rows}, {"length", shape.length}});
  }
  const Sparsity sparsity = sparsity_of(planned.graph());
  if (sparsity.elements > 0) {
    summary.update({{"nonzeros", sparsity.nonzeros},
                    {"sparse_elements", sparsity.elements},
                    {"density", sparsity.density()}});
  }
  return summary;
}

std::string batch_text(const PlannedTraining& planned) {
  const Microbatches& m = planned.microbatches;
  std::string text = fmt::format("batch {}", m.batch);
  if (planned.recipe.tokens > 0) {
    text = fmt::format("batches of {} tokens", planned.recipe.tokens);
    const char* gap = " (";
    for (const VariantShape& shape : token_batches(planned.recipe)) {
      text += fmt::format("{}{}x{}", gap, shape.rows, shape.length);
      gap = ", ";
    }
    text += ")";
  }
  if (m.count() > 1 && planned.recipe.tokens == 0) {
    text += fmt::format(" in microbatches of {}", m.rows);
  } else if (m.count() > 1) {
    text += fmt::format(" in {} microbatches", m.count());
  }
  if (m.rest > 0) text += fmt::format(", the last of {}", m.rest);
  const Sparsity sparsity = sparsity_of(planned.graph());
  if (sparsity.elements > 0) {
    text += fmt::format(", {} nonzeros of {} sparse weights (density {:.3g})", sparsity.nonzeros,
                        sparsity.elements, sparsity.density());
  }
  if (planned.tier != Tier::exact) text += fmt::format(" ({})", name_of(planned.tier));
  return text;
}

void print_json(const nlohmann::json& object) { fmt::print("{}\n", json_text(object, 2)); }

}  // namespace thimble
