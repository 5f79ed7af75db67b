// Which weights are trained, and how the others are kept.
#include <fmt/format.h>

#include "recipe/fields/field_groups.h"

namespace thimble {
namespace {

constexpr const char* kAsStored = "stored";

std::string spelling(CodedFormat format) {
  return format == CodedFormat::f16 ? "fp16" : std::string(name_of(format));
}

}  // namespace

void list_fine_tuning(Recipe& recipe, Fields& fields) {
  fields.group("Fine-tuning");
  FineTuning& tuning = recipe.tuning;
  fields.spelt(
      "lora", [&tuning] { return to_string(tuning.adapters); },
      [&tuning](const std::string& text) { tuning.adapters = parse_adapters(text); },
      {.help = "Train low-rank adapters alone: rank=16,alpha=32,targets=linear[,dropout=P][,rs]",
       .more = "trains low-rank adapters beside linear layers, and freezes everything else: "
               "`rank=16,alpha=32,targets=linear`, with `dropout=0.05` and `rs` (rsLoRA) as asked. "
               "Targets are `linear` (all but the head), names joined by `+`, or a regular "
               "expression, as PEFT has them",
       .usual = "none",
       .placeholder = "SPEC",
       .affects = kAll});
  std::vector<std::string> names = {kAsStored};
  for (int f = 0; f < kCodedFormats; ++f) names.push_back(spelling(static_cast<CodedFormat>(f)));
  fields.choice(
      "frozen", "format of frozen weights", names,
      [&tuning] { return tuning.frozen ? spelling(*tuning.frozen) : std::string(kAsStored); },
      [&tuning](const std::string& name) {
        tuning.frozen.reset();
        for (int f = 0; f < kCodedFormats; ++f) {
          const auto format = static_cast<CodedFormat>(f);
          if (spelling(format) == name) tuning.frozen = format;
        }
      },
      {.help = "Frozen matrices in fp16, bf16, int8 or nf4 (stored: as --precision says)",
       .more = "what frozen matrices are kept in: `fp16`, `bf16`, `int8` or `nf4` (4 bits, double "
               "quantisation), the bytes of bitsandbytes; decoded a tile at a time where they are "
               "read. `stored`: as `--precision` says",
       .usual = "stored",
       .affects = kAll,
       .technique = "frozen"});
}

}  // namespace thimble
