// int2: 4 levels over the range of 256 numbers.
#include "transform/codecs/groups.h"

namespace thimble {

extern const CodecDef codec_int2;
const CodecDef codec_int2{
    .name = "int2",
    .summary = "groups of 256 share a range; rounded stochastically",
    .bits = 2,
    .error = group_code_error(2),
    .stochastic = true,
    .encode = encode_groups<2>,
    .decode = decode_groups<2>,
};

}  // namespace thimble
