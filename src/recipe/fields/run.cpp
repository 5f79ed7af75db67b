// A run's data, length and learning rate, and when it is saved and tested.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "recipe/fields/field_groups.h"

namespace thimble {
namespace {

using nlohmann::json;

// Settings that data sets list of themselves. Only those of the one that is read have an effect.
void list_own_of_sets(DataSpec& data, const ReadByModel& reads, Fields& fields) {
  const DatasetDef* const read = find_dataset(data.name, reads.usual_data);
  for (const DatasetDef* set : all_datasets()) {
    if (set->fields == nullptr) continue;
    Fields own;
    own.group(fields.current_group());
    set->fields(data.settings[std::string(set->name)], own);
    for (const Field& field : std::move(own).take()) {
      About about = field.about();
      if (read != nullptr && read != set)
        about.unused_reason = fmt::format("with the data set '{}'", read->name);
      fields.add({field.name(), field.kind(), field.group(), [field] { return field.get(); },
                  [field](const json& value) { field.set(value); }, std::move(about)});
    }
  }
}

}  // namespace

void list_data(Recipe& recipe, Fields& fields, const ReadByModel& reads) {
  fields.group("Data");
  DataSpec& data = recipe.data;
  const std::string no_images =
      reads.images ? "" : fmt::format("with {}, which reads no images", recipe.model.name);
  const std::string no_crops = !no_images.empty() ? no_images
                               : data.augment     ? ""
                                                  : "without --augment";
  fields.text(
      "data", data.name,
      {.help = "A name from `thimble list data`, or a folder",
       .more = "a name from `thimble list data`, or a folder, which is looked into and said to "
               "be one of them; see [data](data.md)",
       .usual = "digits; models made for images above 32x32: generated",
       .affects = kNumbers});
  fields.text("data-dir", data.folder,
              {.help = "Folder of the set's files",
               .more = "where the files of the set are",
               .usual = "none",
               .placeholder = "FOLDER"});
  list_own_of_sets(data, reads, fields);
  fields.seed("seed", recipe.seed,
              {.help = "Seed of everything random",
               .more = "of weights, order, crops, dropout",
               .affects = affects::numerics});
  fields.toggle("augment", data.augment,
                {.help = "Random crops and mirror images",
                 .more = "reflect-padded random crops and mirror images",
                 .affects = affects::numerics,
                 .unused_reason = no_images,
                 .training = true});
  fields.inverted("no-flip", data.flip,
                  {.help = "With --augment: crops only",
                   .affects = affects::numerics,
                   .unused_reason = no_crops,
                   .training = true});
  fields.whole("crop-pad", data.crop_pad, {.least = 0, .most = 64},
               {.help = "With --augment: padding of the crops",
                .affects = affects::numerics,
                .unused_reason = no_crops,
                .training = true});
}

void list_schedule(Recipe& recipe, Fields& fields) {
  fields.group("How long, how fast");
  ScheduleSpec& schedule = recipe.schedule;
  const std::string no_steps =
      schedule.kind == RateSchedule::Kind::step ? "" : "without --schedule step";
  fields.real("epochs", schedule.epochs, {.least = 0, .most = 1e6, .above = true},
              {.help = "Passes over the training data",
               .more = "passes over the training data, in whole batches; what is left of an epoch "
                       "waits for the next order",
               .training = true});
  fields.whole("steps", schedule.steps, {.least = 1, .most = 100'000'000, .open = 0},
               {.help = "Training steps, instead of epochs",
                .usual = "those of the epochs",
                .training = true});
  fields.real(
      "lr", schedule.rate, {.least = 0, .most = 3e38},
      {.help = "Learning rate",
       .usual = usual_values([](const UpdateRule& rule) { return std::optional(rule.rate); }),
       .affects = affects::numerics,
       .training = true});
  fields.choice("schedule", "schedule", kScheduleKinds, schedule.kind,
                {.help = "constant, step, cosine or inverse-sqrt",
                 .more = "`constant`, `step`, `cosine` (to 0 at the end), `inverse-sqrt`: `--lr` "
                         "times sqrt((W + 1) / (s + 1)) at step s after W of warm-up",
                 .affects = affects::numerics,
                 .training = true});
  fields.spans("milestones", schedule.milestones,
               {.help = "step: epochs, or 'N steps', at which the rate drops",
                .usual = "none",
                .affects = affects::numerics,
                .unused_reason = no_steps,
                .training = true});
  fields.real("factor", schedule.factor, {.least = 0},
              {.help = "step: what the rate is multiplied by",
               .affects = affects::numerics,
               .unused_reason = no_steps,
               .training = true});
  fields.span(
      "warmup", schedule.warmup,
      {.help = "Epochs of linear warm-up, or 'N steps'",
       .more = "epochs of linear warm-up, or `'N steps'`: over W steps, step s (from 0) has "
               "(s + 1) / (W + 1) of `--lr`, and step W, where the schedule begins, all of "
               "it",
       .affects = affects::numerics,
       .training = true});
  std::optional<double>& start = schedule.warmup_start;
  fields.add({"warmup-start",
              Field::Kind::value,
              fields.current_group(),
              [&start] { return start ? json(*start) : json(); },
              [&start](const json& value) {
                start.reset();
                if (!value.is_null()) {
                  start = read_real(value, {.least = 0, .most = 3e38}, "--warmup-start");
                }
              },
              {.help = "Learning rate of the first step of a warm-up",
               .usual = "--lr over one more than its steps",
               .placeholder = "X",
               .affects = affects::numerics,
               .unused_reason = schedule.warmup.count > 0 ? "" : "without --warmup",
               .training = true}});
}

void list_tests(Recipe& recipe, Fields& fields) {
  fields.group("Checkpoints and tests");
  fields.span(
      "save-every", recipe.save_every,
      {.help = "Epochs between checkpoints, or 'N steps' (0: only at the end)", .training = true});
  fields.whole("keep-checkpoints", recipe.keep_checkpoints, {.least = 1, .most = 10'000},
               {.help = "How many of the last checkpoints stay",
                .more = "how many of the last checkpoints stay, for `thimble average`",
                .training = true});
  fields.span("eval-every", recipe.evaluate_every,
              {.help = "Epochs between tests, or 'N steps' (0: only at the end)",
               .unused_reason = recipe.evaluate ? "" : "with --no-eval",
               .training = true});
  fields.inverted("no-eval", recipe.evaluate,
                  {.help = "No tests, not even at the end", .training = true});
}

}  // namespace thimble
