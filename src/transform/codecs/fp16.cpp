// fp16: 11 significant bits, numbers from 6e-8 to 65504.
#include "transform/codecs/rounded.h"

namespace thimble {

extern const CodecDef codec_fp16{
    .name = "fp16",
    .summary = "rounded to the nearest",
    .bits = 16,
    .error = 0x1p-11,
    .encode = round_to<DType::f16>,
    .decode = widen_again,
};

}  // namespace thimble
