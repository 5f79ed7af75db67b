// bf16: 8 significant bits, the range of fp32.
#include "transform/codecs/rounded.h"

namespace thimble {

extern const CodecDef codec_bf16 = rounded_codec<DType::bf16>("bf16", 0x1p-8);

}  // namespace thimble
