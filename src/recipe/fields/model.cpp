// The model, and the device that computes it.
#include <fmt/format.h>

#include "recipe/fields/field_groups.h"

namespace thimble {

void list_device(Recipe& recipe, Fields& fields) {
  fields.group("Device");
  const std::string not_cuda =
      device_traits(recipe.device).has_memory ? "" : "without --device cuda";
  fields.text("device", recipe.device,
              {.help = "cpu, cuda, or null: plans, runs nothing",
               .more = "`cpu`, `cuda` ([on a GPU](gpu.md)), or `null`, which plans and runs "
                       "nothing"});
  fields.on_off("tf32", recipe.on.tf32,
                {.help = "On a GPU, products of fp32 may round their factors to 10 bits",
                 .affects = affects::step_time,
                 .unused_reason = not_cuda,
                 .warn_if_unused = true});
  fields.whole("streams", recipe.on.streams, {.least = 1, .most = 64},
               {.help = "On a GPU, kernels that may run at the same time",
                .affects = affects::step_time,
                .unused_reason = not_cuda,
                .warn_if_unused = true});
  fields.whole("threads", recipe.on.threads, {.least = 0, .most = 1024},
               {.help = "Threads (0: one per core)",
                .more = "0: one per core; the count changes the rounding, hence the bits"});
}

namespace {

// Batches by tokens.
void list_tokens(Recipe& recipe, Fields& fields, const ReadByModel& reads) {
  const bool images = !recipe.model.name.empty() && !recipe.model.build && reads.images;
  const std::string unused_reason =
      images ? fmt::format("with {}, whose records are all alike", recipe.model.name) : "";
  // Names of measured times have them only where they are said.
  const unsigned by_tokens = recipe.tokens > 0 ? kAll : kNumbers;
  const std::string by_rows = !unused_reason.empty() ? unused_reason
                              : recipe.tokens > 0    ? ""
                                                     : "without --tokens";
  fields.whole(
      "tokens", recipe.tokens, {.least = 1, .most = kMostRows, .open = 0},
      {.help = "Padded tokens of a batch, in place of --batch",
       .more = "padded tokens of a batch, in place of `--batch`: records of like length are "
               "batched together, as many as make so many tokens; see [batches by "
               "tokens](text.md#batches-by-tokens)",
       .usual = "none",
       .affects = by_tokens,
       .unused_reason = unused_reason});
  fields.whole(
      "microbatch-tokens", recipe.microbatch_tokens, {.least = 1, .most = kMostRows, .open = 0},
      {.help = "Padded tokens computed at once",
       .more = "padded tokens computed at once, with `--tokens`; gradients add up in place",
       .usual = "the whole batch",
       .affects = by_tokens,
       .technique = "microbatch",
       .unused_reason = by_rows});
  fields.wholes("lengths", recipe.lengths, {.least = 1, .most = kMostRows},
                {.help = "Lengths that records are padded to",
                 .more = "lengths that records are padded to, each a plan in the one arena: "
                         "`--lengths 16,32,64`",
                 .usual = "with --tokens chosen by the data, 13 at most; else the model's",
                 .affects = recipe.lengths.empty() ? kNumbers : kAll,
                 .unused_reason = unused_reason});
}

}  // namespace

void list_model(Recipe& recipe, Fields& fields, const ReadByModel& reads,
                const std::function<void(Fields&)>& list_own) {
  fields.group("Model");
  ModelOptions& model = recipe.model;
  const std::string by_tokens =
      recipe.tokens > 0 ? "with --tokens, which counts them otherwise" : "";
  fields.whole("batch", model.batch, {.least = 1, .most = kMostRows, .open = 0},
               {.help = "Rows of a batch",
                .more = "rows of a batch: 100 for `mlp` and `wrn`, 32 for `resnet` and `unet`, 64 "
                        "for `lstm`",
                .usual = "the model's",
                .affects = kAll,
                .unused_reason = by_tokens});
  fields.whole(
      "microbatch", recipe.microbatch, {.least = 1, .most = kMostRows, .open = 0},
      {.help = "Rows computed at once",
       .more = "rows computed at once; gradients add up in place and weights move once, "
               "after the last. `--batch 100 --microbatch 30` is 30, 30, 30 and 10",
       .usual = "the whole batch",
       .affects = kAll,
       .technique = "microbatch",
       .unused_reason = by_tokens.empty() ? "" : by_tokens + "; choose --microbatch-tokens"});
  list_tokens(recipe, fields, reads);
  fields.whole("classes", model.classes, {.least = 2, .most = kMostWidth, .open = 0},
               {.help = "Classes, where the data do not say",
                .more = "for `plan` without data, `generated` and `idx`",
                .usual = "the data's, else the model's",
                .affects = kAll});
  fields.image("image", model.image,
               {.help = "Image size, where the data do not say",
                .more = "for `plan` without data, and `generated`",
                .usual = "the data's, else the model's",
                .affects = kAll,
                .unused_reason =
                    reads.images ? "" : fmt::format("with {}, which reads no images", model.name)});
  list_own(fields);
  fields.real("label-smoothing", model.label_smoothing, {.least = 0, .most = 1, .below = true},
              {.help = "Share spread over all classes", .placeholder = "P", .affects = kNumbers});
}

}  // namespace thimble
