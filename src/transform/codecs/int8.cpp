// int8: 256 levels over the range of 256 numbers.
#include "transform/codecs/groups.h"

namespace thimble {

extern const CodecDef codec_int8;
const CodecDef codec_int8{
    .name = "int8",
    .summary = "groups of 256 share a range; rounded stochastically",
    .bits = 8,
    .error = group_code_error(8),
    .stochastic = true,
    .encode = encode_groups<8>,
    .decode = decode_groups<8>,
};

}  // namespace thimble
