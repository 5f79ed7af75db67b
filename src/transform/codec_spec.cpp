#include "transform/codec_spec.h"

#include <algorithm>

#include "base/error.h"

namespace thimble {
namespace {

constexpr std::string_view kAutomatic = "auto";
constexpr std::string_view kStrongest = ":int4";  // unless another is named

}  // namespace

std::string to_string(const CodecSpec& spec) {
  const std::string name(name_of(spec.codec));
  return spec.automatic ? std::string(kAutomatic) + ":" + name : name;
}

CodecSpec parse_codec_spec(std::string_view spelling) {
  CodecSpec spec;
  spec.automatic = spelling.starts_with(kAutomatic);
  if (!spec.automatic) {
    spec.codec = parse_codec(spelling);
    return spec;
  }
  spelling.remove_prefix(kAutomatic.size());
  if (spelling.empty()) spelling = kStrongest;
  if (spelling[0] == ':') spec.codec = parse_codec(spelling.substr(1));
  user_check(spec.codec != nullptr,
             "--codec auto takes the strongest codec it may choose behind a colon (auto:int8), not "
             "'{}'",
             spelling);
  return spec;
}

NumericsTier tier_of(const CodecSpec& spec) {
  if (!spec.automatic)
    return is_lossy(spec.codec) ? NumericsTier::approximate : NumericsTier::exact;
  const bool any =
      spec.chosen && std::any_of(spec.chosen->begin(), spec.chosen->end(),
                                 [](const ValueCodec& entry) { return is_lossy(entry.codec); });
  return any ? NumericsTier::approximate : NumericsTier::exact;
}

void check_allowed(const CodecSpec& spec, NumericsTier allowed) {
  user_check(tier_of(spec) <= allowed,
             "activations kept as {} are approximate, and --allow is {}; choose --codec {}, or "
             "leave --codec out",
             to_string(spec), name_of(allowed), name_of(sign_codec()));
}

}  // namespace thimble
