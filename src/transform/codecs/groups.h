// Codecs of a few bits a number, rounded stochastically (base/number/group_quantization.h).
#pragma once

#include "transform/codecs/decoded.h"

namespace thimble {

template <int kBits>
std::vector<ValueId> encode_groups(CodecBuilder& builder, ValueId value, bool zeros) {
  Builder& build = builder.build;
  return build.apply("encode_groups", {value, builder.random()},
                     {{"bits", int64_t{kBits}},
                      {"zeros", int64_t{zeros}},
                      {"stream", build.next_random_stream()}});
}

template <int kBits>
ValueId decode_groups(Builder& build, const std::vector<ValueId>& code, const TensorType& type,
                      bool zeros) {
  return build.op("decode_groups", code,
                  decoded(type).set("bits", int64_t{kBits}).set("zeros", int64_t{zeros}));
}

template <int kBits>
constexpr CodecDef group_codec(std::string_view name) {
  return {.name = name,
          .summary = "groups of 256 share a range; rounded stochastically",
          .bits = kBits,
          .error = 1.0 / ((1 << kBits) - 1),
          .stochastic = true,
          .encode = encode_groups<kBits>,
          .decode = decode_groups<kBits>};
}

}  // namespace thimble
