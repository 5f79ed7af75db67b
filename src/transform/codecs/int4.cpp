// int4: 16 levels over the range of 256 numbers.
#include "transform/codecs/groups.h"

namespace thimble {

extern const CodecDef codec_int4;
const CodecDef codec_int4{
    .name = "int4",
    .summary = "groups of 256 share a range; rounded stochastically",
    .bits = 4,
    .error = group_code_error(4),
    .stochastic = true,
    .encode = encode_groups<4>,
    .decode = decode_groups<4>,
};

}  // namespace thimble
