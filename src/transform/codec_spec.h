// A user's choice of codecs: one for all large activations, or automatic ones for a budget.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "transform/codec.h"
#include "transform/numerics_tier.h"

namespace thimble {

// The codec of one activation.
struct ValueCodec {
  std::string value;  // its name
  Codec codec = nullptr;
  bool operator==(const ValueCodec&) const = default;
};

struct CodecSpec {
  Codec codec = nullptr;               // if automatic, the strongest that may be chosen
  std::vector<std::string> only = {};  // shell patterns over names of nodes; empty: all
  bool automatic = false;  // chosen value by value for a budget (transform/codec_ladder.h)
  // The automatic choice. Before there is one, nothing is encoded.
  std::optional<std::vector<ValueCodec>> chosen = {};
};
// "int8"; automatic: "auto:int8", and "auto" is "auto:int4". UserError for another spelling.
std::string to_string(const CodecSpec& spec);
CodecSpec parse_codec_spec(std::string_view spelling);

// The tier of results with it. check_allowed: UserError with an alternative if it is above
// `allowed`.
NumericsTier tier_of(const CodecSpec& spec);
void check_allowed(const CodecSpec& spec, NumericsTier allowed);

}  // namespace thimble
