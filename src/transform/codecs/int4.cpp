// int4: 16 levels over the range of 256 numbers.
#include "transform/codecs/groups.h"

namespace thimble {

extern const CodecDef codec_int4 = group_codec<4>("int4");

}  // namespace thimble
