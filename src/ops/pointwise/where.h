// The mask of where.
#pragma once

#include <algorithm>

#include "graph/op.h"

namespace thimble {

struct WhereMask {
  const uint8_t* bytes;  // one of both is null
  const int32_t* numbers;
  bool negate;
  int64_t count;   // entries of the mask
  int64_t behind;  // elements that each of them goes for

  explicit WhereMask(const KernelArgs& args)
      : bytes(args.inputs[0].type.dtype == DType::u8 ? args.inputs[0].as<uint8_t>() : nullptr),
        numbers(bytes == nullptr ? args.inputs[0].as<int32_t>() : nullptr),
        negate(args.attrs->integer("negate", 0) != 0),
        count(args.inputs[0].elements()),
        behind(args.outputs[0].elements() / std::max<int64_t>(1, count)) {}

  // Whether entry i picks the first tensor.
  bool takes(int64_t i) const {
    return (bytes != nullptr ? bytes[i] != 0 : numbers[i] != 0) != negate;
  }
};

}  // namespace thimble
