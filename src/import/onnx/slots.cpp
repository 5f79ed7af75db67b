#include "import/onnx/slots.h"

#include <algorithm>
#include <array>
#include <span>

namespace thimble {
namespace {

struct Slots {
  std::string_view op;
  size_t first, last;
};

constexpr std::array<Slots, 14> kWeights = {{{"Conv", 1, 2},
                                             {"ConvTranspose", 1, 2},
                                             {"com.microsoft.FusedConv", 1, 2},
                                             {"Gemm", 1, 2},
                                             {"MatMul", 0, 1},
                                             {"BatchNormalization", 1, 4},
                                             {"LayerNormalization", 1, 2},
                                             {"InstanceNormalization", 1, 2},
                                             {"GroupNormalization", 1, 2},
                                             {"RMSNormalization", 1, 1},
                                             {"LSTM", 1, 3},
                                             {"GRU", 1, 3},
                                             {"RNN", 1, 3},
                                             {"PRelu", 1, 1}}};

constexpr std::array<Slots, 12> kSettings = {{{"Pow", 1, 1},
                                              {"Clip", 1, 2},
                                              {"Pad", 1, 3},
                                              {"Resize", 1, 3},
                                              {"Upsample", 1, 1},
                                              {"Dropout", 1, 2},
                                              {"Range", 0, 2},
                                              {"OneHot", 1, 2},
                                              {"Slice", 1, 4},
                                              {"Reshape", 1, 1},
                                              {"Expand", 1, 1},
                                              {"Tile", 1, 2}}};

bool is_in(std::span<const Slots> all, std::string_view op, size_t input) {
  return std::ranges::any_of(all, [&](const Slots& slots) {
    return slots.op == op && input >= slots.first && input <= slots.last;
  });
}

}  // namespace

bool is_weight_slot(std::string_view op, size_t input) { return is_in(kWeights, op, input); }
bool is_setting_slot(std::string_view op, size_t input) { return is_in(kSettings, op, input); }

}  // namespace thimble
