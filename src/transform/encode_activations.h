// Keeps large activations encoded between the forward and the backward pass: an encoder right
// behind the node that makes one, a decoder right in front of each backward node that reads it.
// The code in between is a value of the forward pass like any other: planners may drop and recompute
// it, to the same bits.
//
//   forward    x = conv(...)    c = encode(x)   y = relu(x)   ...        x is dropped, c is kept
//   backward                                        ...   x' = decode(c)   dx = backward(x', dy)
//
// Masks are never lossy: where a gradient reads the sign of a value that is kept in a lossy code,
// the code keeps zeros, or a bit a number is kept beside it. A gradient that would find the mask of
// a fused relu from decoded numbers gets it from the relu's result:
//
//   dx = norm_backward{relu}(x, ..., dy)   becomes   dz = relu_backward(y', dy)
//                                                    dx = norm_backward{none}(x', ..., dz)
#pragma once

#include <string>
#include <vector>

#include "graph/graph.h"
#include "transform/codec_spec.h"

namespace thimble {

// A value that can be kept encoded.
struct Encodable {
  ValueId value;
  bool signs = false;   // the backward pass reads no more of it than signs: a mask will do
  bool curved = false;  // some gradient is not linear in it
};
// In order of values; none that the patterns leave out. `graph` is a step with nothing encoded yet.
std::vector<Encodable> find_encodable(const Graph& graph, const CodecSpec& spec);
// The codec that is in fact used for the value. Null: it stays uncompressed.
Codec kept_as(const Encodable& value, DType dtype, Codec wanted);

// An encoded value of a step.
struct Encoded {
  ValueId value;
  Codec codec = nullptr;
  std::vector<ValueId> code;  // what is kept in its place
};
std::vector<Encoded> find_encoded(const Graph& graph);

// REQUIRES: the graph has gradients and no updates. `rng` is the model's, where it has one. Returns the one
// that was read. UserError when a pattern matches no node with an encodable result, or a choice names a
// value that is not there. A value that has become too small stays uncompressed.
ValueId encode_activations(Graph& graph, const CodecSpec& spec, ValueId rng);

}  // namespace thimble
