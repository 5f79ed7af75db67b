// bf16: 8 significant bits, the range of fp32.
#include "transform/codecs/rounded.h"

namespace thimble {

extern const CodecDef codec_bf16{
    .name = "bf16",
    .summary = "rounded to the nearest",
    .bits = 16,
    .error = 0x1p-8,
    .encode = round_to<DType::bf16>,
    .decode = widen_again,
};

}  // namespace thimble
