#include "ops/embed/row_lookup.h"

#include "ops/reference.h"

namespace thimble {

void look_up_rows(const KernelArgs& args) {
  const Shape& table = args.inputs[0].type.shape;
  const RowLookup lookup(table[0], table[1], *args.attrs);
  const int32_t* numbers = args.inputs[1].as<int32_t>();
  with_float_type(args.inputs[0].type.dtype, [&]<class T>(TypeTag<T>) {
    const auto scale = static_cast<Accumulator<T>>(lookup.scale);
    for (int64_t i = 0; i < args.inputs[1].elements(); ++i) {
      const bool found = lookup.has(numbers[i]);
      const T* row = args.inputs[0].as<T>() + (found ? numbers[i] * lookup.width : 0);
      for (int64_t c = 0; c < lookup.width; ++c) {
        store(args.outputs[0].as<T>(), i * lookup.width + c, found ? widen(row[c]) * scale : 0);
      }
    }
  });
}

}  // namespace thimble
