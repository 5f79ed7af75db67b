// Codecs that round to another floating type. Rounding never changes a sign. Numbers below half the
// type's smallest become zero.
#pragma once

#include "transform/codec.h"

namespace thimble {

template <DType kTo>
std::vector<ValueId> round_to(CodecBuilder& builder, ValueId value, bool) {
  return builder.build.apply("cast", {value}, {{"dtype", std::string(name_of(kTo))}});
}

inline ValueId widen_again(Builder& build, const std::vector<ValueId>& code, const TensorType& type,
                           bool) {
  return build.op("cast", code, {{"dtype", std::string(name_of(type.dtype))}});
}

template <DType kTo>
constexpr CodecDef rounded_codec(std::string_view name, double error) {
  return {.name = name,
          .summary = "rounded to the nearest",
          .bits = 16,
          .error = error,
          .encode = round_to<kTo>,
          .decode = widen_again};
}

}  // namespace thimble
