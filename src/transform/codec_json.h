// Codecs as plan files and checkpoints record them.
#pragma once

#include <nlohmann/json.hpp>

#include "transform/encode_activations.h"

namespace thimble {

//   {"codec": "auto:int8", "codec_only": ["*conv*"], "codec_chosen": {"stem.conv2d#1": "int8"}}
// `codec_chosen` is there where a choice was made. Other keys are not looked at.
nlohmann::json to_json(const CodecSpec& spec);
// UserError, or an exception of the library's, where it is none.
CodecSpec codec_from_json(const nlohmann::json& json);

}  // namespace thimble
