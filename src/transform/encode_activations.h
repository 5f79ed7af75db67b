// Activation compression: large activations are kept encoded between the forward and the backward
// pass. An encoder stands right after the node that makes one, a decoder right before each
// backward node that reads it. The code in between is a value of the forward pass like any other:
// planners may drop and recompute it, to the same bits.
//
//   forward    x = conv(...)    c = encode(x)   y = relu(x)   ...        x is dropped, c is kept
//   backward                                        ...   x' = decode(c)   dx = backward(x', dy)
//
// Masks are never lossy: where a gradient reads the sign of a value with a lossy code, the code
// preserves zeros, or one bit a number is kept beside it. A gradient that would compute the mask of
// a fused relu from decoded numbers reads it off the relu's result:
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
  bool signs = false;   // the backward pass reads only its signs: a mask suffices
  bool curved = false;  // some gradient is not linear in it
};
// In order of values, without values that the patterns leave out. REQUIRES: nothing is encoded yet.
std::vector<Encodable> find_encodable(const Graph& graph, const CodecSpec& spec);
// The codec used for the value. Null: it stays uncompressed.
Codec kept_as(const Encodable& value, DType dtype, Codec wanted);

// An encoded value of a step.
struct Encoded {
  ValueId value;
  Codec codec = nullptr;
  std::vector<ValueId> code;  // kept in its place
};
std::vector<Encoded> find_encoded(const Graph& graph);

// REQUIRES: the graph has gradients and no updates. `rng` is the model's, if it has one. Returns
// the `rng` in use. UserError if a pattern matches no node with an encodable result, or a choice
// names a value that does not exist. A value that has become too small stays uncompressed.
ValueId encode_activations(Graph& graph, const CodecSpec& spec, ValueId rng);

}  // namespace thimble
