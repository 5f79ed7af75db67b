#include "transform/codec.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"

namespace thimble {
namespace {

constexpr std::string_view kWhole = "none";
constexpr double kGentle = 1.0 / 15;  // an error whose square is small

}  // namespace

ValueId CodecBuilder::random() {
  if (!rng.valid()) rng = Builder(build.graph()).input("rng", {{3}, DType::i64});
  return rng;
}

std::string_view name_of(Codec codec) { return codec == nullptr ? kWhole : codec->name; }

Codec parse_codec(std::string_view name) {
  if (name == kWhole) return nullptr;
  for (const Codec codec : all_codecs()) {
    if (codec->name == name) return codec;
  }
  user_error("there is no codec '{}'; known: {}, {}", name, kWhole, codec_names());
}

std::string codec_names() {
  std::vector<std::string_view> names;
  for (const Codec codec : codecs_by_error()) names.push_back(codec->name);
  return fmt::format("{}", fmt::join(names, ", "));
}

std::vector<Codec> codecs_by_error() {
  const std::span<const CodecDef* const> all = all_codecs();
  std::vector<Codec> codecs(all.begin(), all.end());
  std::stable_sort(codecs.begin(), codecs.end(),
                   [](Codec a, Codec b) { return a->error < b->error; });
  return codecs;
}

Codec sign_codec() {
  const std::span<const CodecDef* const> all = all_codecs();
  const auto at =
      std::find_if(all.begin(), all.end(), [](Codec codec) { return codec->signs_alone; });
  internal_check(at != all.end(), "no codec keeps signs alone");
  return *at;
}

Codec gentle_codec(Codec wanted) {
  if (wanted == nullptr || wanted->error <= kGentle) return wanted;
  Codec best = nullptr;
  for (const Codec codec : codecs_by_error()) {
    if (codec->signs_alone || codec->error > kGentle) continue;
    if (best == nullptr || codec->bits < best->bits) best = codec;
  }
  return best;
}

}  // namespace thimble
