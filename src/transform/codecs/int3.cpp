// int3: 8 levels over the range of 256 numbers.
#include "transform/codecs/groups.h"

namespace thimble {

extern const CodecDef codec_int3 = group_codec<3>("int3");

}  // namespace thimble
