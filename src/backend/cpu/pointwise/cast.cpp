// cast between f32 and the 16-bit floats, and from bytes.
#include "backend/cpu/pointwise/elementwise.h"

namespace thimble {
namespace {

THIMBLE_FOR_EACH_ISA void widen_bytes(const KernelArgs& args, int64_t begin, int64_t end) {
  const uint8_t* __restrict x = args.inputs[0].as<const uint8_t>();
  map_range(args.outputs[0].as<float>(), begin, end, args.adds_into(0),
            [=](int64_t i) { return static_cast<float>(x[i]); });
}

// Between f32 and 16-bit floats staging does the work.
THIMBLE_FOR_EACH_ISA void pass_on(const KernelArgs& args, int64_t begin, int64_t end) {
  map_unary(args, begin, end, [](float x) { return x; });
}

std::unique_ptr<Kernel> make(const Signature& s) {
  if (s.inputs[0].dtype == DType::u8 && s.outputs[0].dtype == DType::f32) {
    return s.outputs[0].elements() > 0
               ? std::make_unique<UnitKernel>(s.outputs[0].elements(), 1, widen_bytes)
               : nullptr;
  }
  return is_floating(s.inputs[0].dtype) ? make_elementwise(s, pass_on) : nullptr;
}

}  // namespace

extern const CpuKernel cpu_cast{"cast", make};

}  // namespace thimble
