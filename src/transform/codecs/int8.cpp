// int8: 256 levels over the range of 256 numbers.
#include "transform/codecs/groups.h"

namespace thimble {

extern const CodecDef codec_int8 = group_codec<8>("int8");

}  // namespace thimble
