// Activation compression: a codec encodes an activation between the forward and the backward pass.
// A codec is one record in one file of transform/codecs, and the file's name is its registration.
// Users of codecs see this record alone.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/builder.h"

namespace thimble {

// The builder for a codec's nodes.
struct CodecBuilder {
  Builder& build;
  ValueId& rng;  // the step's random numbers; invalid where it has none yet

  ValueId random();  // `rng`, added if there is none yet
};

struct CodecDef {
  std::string_view name;  // = file name
  std::string_view summary;

  double bits = 0;  // of a number, without the scales that groups of numbers share
  // The largest error of a number, as a share of the largest number near it; 0: lossless.
  double error = 0;
  bool stochastic = false;   // rounds stochastically: each number is right on average
  bool signs_alone = false;  // keeps only which numbers are above zero

  // A node of the forward pass: the value's code. With `zeros`, no number is below zero, and
  // numbers decoded are above zero exactly where those encoded are.
  std::vector<ValueId> (*encode)(CodecBuilder& builder, ValueId value, bool zeros) = nullptr;
  // A node of the backward pass: a tensor of that type from a code made with the same `zeros`.
  ValueId (*decode)(Builder& build, const std::vector<ValueId>& code, const TensorType& type,
                    bool zeros) = nullptr;
};

// The generated table of src/transform/codecs, in name order.
std::span<const CodecDef* const> all_codecs();

// The codec of a value; null: uncompressed.
using Codec = const CodecDef*;
std::string_view name_of(Codec codec);  // "none" where it is null
// UserError for another name.
Codec parse_codec(std::string_view name);
// "mask, fp16, ...": all codecs, the smallest error first.
std::string codec_names();

// All codecs, the smallest error first.
std::vector<Codec> codecs_by_error();
// The codec that keeps only signs.
Codec sign_codec();
// The codec instead of `wanted` where gradients are not linear in the value. There, rounding that
// is right on average still leaves an error of about its square. It has the fewest bits among
// codecs with a small squared error.
Codec gentle_codec(Codec wanted);

inline bool is_lossy(Codec codec) { return codec != nullptr && codec->error > 0; }

}  // namespace thimble
