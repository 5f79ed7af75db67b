// mask: a bit a number, where it is above zero.
#include "transform/codecs/decoded.h"

namespace thimble {

extern const CodecDef codec_mask{
    .name = "mask",
    .summary = "a bit where only the sign is read, which changes nothing; the rest stays whole",
    .bits = 1,
    .signs_alone = true,
    .encode = [](CodecBuilder& builder, ValueId value,
                 bool) { return builder.build.apply("encode_signs", {value}); },
    .decode = [](Builder& build, const std::vector<ValueId>& code, const TensorType& type,
                 bool) { return build.op("decode_signs", code, decoded(type)); },
};

}  // namespace thimble
