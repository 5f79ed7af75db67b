// Keeps large activations encoded between the forward and the backward pass: an encoder right
// behind the node that makes one, a decoder right in front of each backward node that reads it.
// What is kept in between is the code, a value of the forward pass like any other: planners may
// drop it, too, and compute it again to the same bits.
//
//   forward    x = conv(...)    c = encode(x)   y = relu(x)   ...        x is dropped, c is kept
//   backward                                        ...   x' = decode(c)   dx = backward(x', dy)
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "transform/tier.h"

namespace thimble {

enum class Codec : uint8_t {
  none,
  mask,  // a bit where only the sign is read (behind a relu), which changes nothing; the rest stays
  fp16,  // below: masks where they do, and else this
  bf16,
  int8,
  int4,
  int2,
};
std::string_view name_of(Codec codec);
// UserError for another name.
Codec parse_codec(std::string_view name);

// How one activation is kept. Never `none`.
struct ValueCodec {
  std::string value;  // its name
  Codec codec = Codec::none;
  bool operator==(const ValueCodec&) const = default;
};

struct CodecSpec {
  Codec codec = Codec::none;           // automatic: the strongest that may be chosen
  std::vector<std::string> only = {};  // shell patterns over names of nodes; empty: all
  bool automatic = false;  // chosen value by value, to suit a budget (transform/codec_ladder.h)
  // What was chosen; without a choice, automatic encodes nothing.
  std::optional<std::vector<ValueCodec>> chosen = {};
};
// "int8"; automatic: "auto:int8", and "auto" is "auto:int4". UserError for another spelling.
std::string to_string(const CodecSpec& spec);
CodecSpec parse_codec_spec(std::string_view spelling);

// What it does to the numbers; and a UserError, saying what to choose instead, above `allowed`.
Tier tier_of(const CodecSpec& spec);
void check_allowed(const CodecSpec& spec, Tier allowed);

// A value that can be kept encoded.
struct Encodable {
  ValueId value;
  bool signs = false;  // the backward pass reads no more of it than signs: a mask will do
};
// In order of values; none that the patterns leave out. `graph` is a step with nothing encoded yet.
std::vector<Encodable> find_encodable(const Graph& graph, const CodecSpec& spec);

// An encoded value of a step.
struct Encoded {
  ValueId value;
  Codec codec = Codec::none;
  std::vector<ValueId> code;  // what is kept in its place
};
std::vector<Encoded> find_encoded(const Graph& graph);

// REQUIRES: gradients are there, updates are not. `rng` is the model's, where it has one; returns
// what was read. UserError when a pattern matches no node whose result would be encoded, or a choice
// names a value that is not there; one that is too small by now stays whole.
ValueId encode_activations(Graph& graph, const CodecSpec& spec, ValueId rng);

}  // namespace thimble
