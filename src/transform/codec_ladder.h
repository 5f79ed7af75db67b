// Encodings of a step's activations (activation compression), from low to high risk: which of them
// are encoded, and by which codec.
#pragma once

#include <span>
#include <vector>

#include "transform/encode_activations.h"

namespace thimble {

// An encoding. Its accuracy risk is the number of bytes that lossy codes save.
struct Encoding {
  std::vector<ValueCodec> values;
  double risk = 0;
};

// About `most` encodings (a few at least), lower risk first. The first encodes nothing. `graph` is
// the step with nothing encoded, and `encodable` the result of find_encodable(). `groups` holds
// each of these values once, in groups that are encoded together, in order of priority. Codecs go up
// to the strongest of `spec`, or only masks where the tier does not allow more.
std::vector<Encoding> encodings_to_try(const Graph& graph, const CodecSpec& spec,
                                       NumericsTier allowed, std::span<const Encodable> encodable,
                                       const std::vector<std::vector<ValueId>>& groups,
                                       size_t most);

// The codecs that an automatic `spec` may choose, weakest first. Otherwise the codec of `spec`.
std::vector<Codec> rungs_of(const CodecSpec& spec);

}  // namespace thimble
