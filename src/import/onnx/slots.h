// Uses of the inputs of ONNX's ops: weights that a layer has, and settings that it is told by.
#pragma once

#include <string_view>

namespace thimble {

// A layer's own numbers: a filter, a bias, a scale, running statistics.
bool is_weight_slot(std::string_view op, size_t input);
// Has to be known before anything is built: an exponent, bounds, factors of sizes.
bool is_setting_slot(std::string_view op, size_t input);

}  // namespace thimble
