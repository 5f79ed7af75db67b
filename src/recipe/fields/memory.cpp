// How much memory a step may take, and what it may do for it.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "plan/plan.h"
#include "plan/policy.h"
#include "recipe/fields/field_groups.h"
#include "transform/codec.h"

namespace thimble {
namespace {

using nlohmann::json;

void list_budget(Recipe& recipe, Fields& fields) {
  std::optional<Bytes>& memory = recipe.memory;
  Fields budget;
  budget.group("Memory");
  budget.budget("memory", memory, {{"least", kLeastMemory}, {"auto", kAutomaticMemory}},
                {.help = "Budget of the arena: 64MiB, 1.5GB, ..., least or auto",
                 .more = "budget of the arena: `64MiB` (1024s), `6.5MB` (1000s) or plain bytes; "
                         "`least`: as little as can be done with; `auto`: what the machine has "
                         "left, see [fit](fit.md#as-much-as-there-is)",
                 .usual = "none",
                 .technique = "recomputation"});
  const Field plain = std::move(std::move(budget).take().front());
  fields.add({"memory", plain.kind(), plain.group(), [plain] { return plain.get(); },
              [plain, &recipe](const json& value) {
                plain.set(value);
                recipe.planner = recipe.memory ? budget_policy() : keep_all_policy();
                recipe.fit = recipe.memory.has_value();
              },
              plain.about()});
  fields.spelt(
      "planner", [&recipe] { return recipe.planner; },
      [&recipe](const std::string& name) {
        choose_policy(name);
        recipe.planner = name;
        recipe.fit = false;
      },
      {.help = "How to meet it, from `thimble list planners`",
       .more = "`keep_all`, `drop_cheap`, `sqrt_segments`, `chen_budget`, `mirror`, "
               "`log_recursive` (`log_recursive:3` cuts at three places at once), or `optimal`: "
               "the fastest found that fits `--memory`; to compare with, `none`, `inplace` and "
               "`sharing` (= `keep_all`), which compute everything once",
       .usual = "optimal; without --memory: keep_all",
       .technique = "recomputation"});
  fields.on_off("fit", recipe.fit,
                {.help = "The budget chooses microbatches, precision, codecs, ..., too",
                 .more = "whether `--memory` chooses techniques as far as `--allow` lets it, see "
                         "[fit](fit.md); `off`: recomputation alone, by `--planner`",
                 .usual = "on with --memory, unless --planner or --codec auto says how",
                 .unused_reason = recipe.memory ? "" : "without --memory",
                 .recorded = false});
}

void list_marks(Recipe& recipe, Fields& fields) {
  fields.texts("keep", recipe.marks.keep,
               {.help = "Results always kept, by node name (shell pattern)",
                .more = "results that every planner must keep, by node name (`'*bn2*'`); may be "
                        "repeated or joined by commas; a pattern that matches nothing, or two that "
                        "contradict, is refused",
                .usual = "none",
                .affects = affects::step_time,
                .technique = "recomputation"});
  fields.texts("recompute", recipe.marks.recompute,
               {.help = "Results always recomputed, by node name",
                .usual = "none",
                .affects = affects::step_time,
                .technique = "recomputation"});
}

void list_codec(CodecSpec& codec, Fields& fields) {
  fields.spelt(
      "codec", [&codec] { return to_string(codec); },
      [&codec](const std::string& name) {
        CodecSpec spec = parse_codec_spec(name);
        spec.only = codec.only;
        codec = std::move(spec);
      },
      {.help =
           fmt::format("How activations are kept: none, {}; or auto[:NAME], chosen for --memory "
                       "tensor by tensor, NAME at most (auto: int4)",
                       codec_names()),
       .more = fmt::format("how activations from 1,024 numbers on are kept for the backward pass: "
                           "{}; or `auto`, see [codecs](#codecs)",
                           codec_names()),
       .affects = kAll,
       .technique = "codec",
       .timed = codec.automatic ? "none" : ""});
  fields.texts("codec-only", codec.only,
               {.help = "Results that --codec applies to",
                .more = "only results of these nodes; may be repeated or joined by commas",
                .usual = "all large ones",
                .affects = kAll,
                .technique = "codec",
                .unused_reason = codec.codec == nullptr ? "without --codec" : ""});
  fields.add({"codec-chosen",
              Field::Kind::record,
              "Memory",
              [&codec] {
                if (!codec.chosen) return json();
                json chosen = json::object();
                for (const ValueCodec& entry : *codec.chosen) {
                  chosen[entry.value] = name_of(entry.codec);
                }
                return chosen;
              },
              [&codec](const json& value) {
                codec.chosen.reset();
                if (value.is_null()) return;
                user_check(value.is_object(), "--codec-chosen is a table of values and codecs");
                codec.chosen.emplace();
                for (const auto& [name, entry] : value.items()) {
                  codec.chosen->push_back({name, parse_codec(read_text(entry, "--codec-chosen"))});
                }
              },
              {.help = "What --codec auto chose",
               .affects = affects::numerics,
               .technique = "codec",
               .flag = false}});
}

}  // namespace

void list_memory(Recipe& recipe, Fields& fields) {
  fields.group("Memory");
  list_budget(recipe, fields);
  list_marks(recipe, fields);
  fields.toggle("fold", recipe.optimizer.fold,
                {.help = "sgd: add gradients straight into the momentum",
                 .more = "`--optimizer sgd` only: gradients are added straight into the momentum, "
                         "so that no gradient tensor exists",
                 .affects = kAll,
                 .technique = "fold"});
  fields.choice("allow", "tier", 3, recipe.allow,
                {.help = "Largest change to results allowed: exact, equivalent or approximate",
                 .more = "what a step may do to the numbers, see [tiers](#tiers-and-microbatches); "
                         "beyond it, exit 2",
                 .usual = "approximate; of what --fit chooses: equivalent",
                 .placeholder = "TIER"});
  list_codec(recipe.codec, fields);
  fields.text("costs", recipe.costs,
              {.help = "Kernel times: auto (of `thimble calibrate`, where it measured), modelled, "
                       "or a file of it",
               .more = "kernel times to predict with: `auto`, those of "
                       "[`thimble calibrate`](#thimble-calibrate-model) where it measured; "
                       "`modelled`, none of them; or a file that it wrote",
               .usual = "auto",
               .placeholder = "FILE"});
}

}  // namespace thimble
