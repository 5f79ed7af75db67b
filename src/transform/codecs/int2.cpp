// int2: 4 levels over the range of 256 numbers.
#include "transform/codecs/groups.h"

namespace thimble {

extern const CodecDef codec_int2 = group_codec<2>("int2");

}  // namespace thimble
