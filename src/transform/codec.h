// Activation compression: a codec encodes an activation between the forward and the backward pass. A codec
// is one record in one file of transform/codecs, and the file's name is its registration. Users of codecs
// see this record alone.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/builder.h"

namespace thimble {

// The builder that a codec adds its nodes with.
struct CodecBuilder {
  Builder& build;
  ValueId& rng;  // the step's random numbers; invalid where it has none yet

  ValueId random();  // `rng`, which is there from now on
};

struct CodecDef {
  std::string_view name;  // = file name
  std::string_view summary;

  double bits = 0;  // of a number, what groups share apart
  // The most that a number is off, as a share of the largest near it; 0: nothing is lost.
  double error = 0;
  bool stochastic = false;   // rounds so that each number is right on average
  bool signs_alone = false;  // keeps no more than where numbers are above zero

  // A node of the forward pass: the value's code. With `zeros`, no number is below zero, and numbers
  // decoded are above zero exactly where those encoded are.
  std::vector<ValueId> (*encode)(CodecBuilder& builder, ValueId value, bool zeros) = nullptr;
  // A node of the backward pass: a tensor of that type from a code made with the same `zeros`.
  ValueId (*decode)(Builder& build, const std::vector<ValueId>& code, const TensorType& type,
                    bool zeros) = nullptr;
};

// The generated table of src/transform/codecs, in name order.
std::span<const CodecDef* const> all_codecs();

// How a value is kept; null: whole.
using Codec = const CodecDef*;
std::string_view name_of(Codec codec);  // "none" where it is null
// UserError for another name.
Codec parse_codec(std::string_view name);
// "mask, fp16, ...": all of them, what loses least first.
std::string codec_names();

// All codecs, the smallest error first.
std::vector<Codec> codecs_by_error();
// The one that keeps signs alone.
Codec sign_codec();
// The codec in place of `wanted` where results are not linear in the value. There an error that is zero on
// average leaves one of about its square. Of the codecs with a small squared error, the one of fewest bits.
Codec gentle_codec(Codec wanted);

inline bool is_lossy(Codec codec) { return codec != nullptr && codec->error > 0; }

}  // namespace thimble
