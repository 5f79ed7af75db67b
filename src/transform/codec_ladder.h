// Ways of keeping a step's activations for a budget to choose from: which of them are encoded, and
// how.
#pragma once

#include <span>
#include <vector>

#include "transform/encode_activations.h"

namespace thimble {

// One way. Its harm is the bytes that lossy codes leave out.
struct Encoding {
  std::vector<ValueCodec> values;
  double risk = 0;
};

// About `most` encodings (a few at least), lower risk first. The first encodes nothing. `graph` is the step
// with nothing encoded, and `encodable` the result of find_encodable(). `groups` holds every value of that
// once, in groups that are encoded together, the most rewarding first. Codecs go up to the strongest of
// `spec`, and are masks alone where the tier does not allow more. The result depends on nothing else, so
// equal requests get equal answers.
std::vector<Encoding> encodings_to_try(const Graph& graph, const CodecSpec& spec,
                                       NumericsTier allowed, std::span<const Encodable> encodable,
                                       const std::vector<std::vector<ValueId>>& groups,
                                       size_t most);

// The codecs that `spec` may choose, weakest first; without an automatic one, that alone.
std::vector<Codec> rungs_of(const CodecSpec& spec);

}  // namespace thimble
