// fp16: 11 significant bits, numbers from 6e-8 to 65504.
#include "transform/codecs/rounded.h"

namespace thimble {

extern const CodecDef codec_fp16 = rounded_codec<DType::f16>("fp16", 0x1p-11);

}  // namespace thimble
