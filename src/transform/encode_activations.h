// Keeps large activations encoded between the forward and the backward pass: an encoder right
// behind the node that makes one, a decoder right in front of each backward node that reads it.
// What is kept in between is the code, a value of the forward pass like any other: planners may
// drop it, too, and compute it again to the same bits.
//
//   forward    x = conv(...)    c = encode(x)   y = relu(x)   ...        x is dropped, c is kept
//   backward                                        ...   x' = decode(c)   dx = backward(x', dy)
#pragma once

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

struct CodecSpec {
  Codec codec = Codec::none;
  std::vector<std::string> only;  // shell patterns over names of nodes; empty: all
};

// What it does to the numbers; and a UserError, saying what to choose instead, above `allowed`.
Tier tier_of(const CodecSpec& spec);
void check_allowed(const CodecSpec& spec, Tier allowed);

// REQUIRES: gradients are there, updates are not. `rng` is the model's, where it has one; returns
// what was read. UserError when a pattern matches no node whose result would be encoded.
ValueId encode_activations(Graph& graph, const CodecSpec& spec, ValueId rng);

}  // namespace thimble
