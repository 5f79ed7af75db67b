// cast between f32 and the 16-bit floats, and from bytes. bf16 and bytes vectorise; f16 goes
// element by element.
#include "backend/cpu/elementwise.h"

namespace thimble {
namespace {

// Branch-free forms of base/dtype.h's conversions, same bits.
THIMBLE_INLINE uint16_t to_bf16(float value) {
  const auto word = std::bit_cast<uint32_t>(value);
  const uint32_t rounded = (word + 0x7fffu + ((word >> 16) & 1u)) >> 16;
  const uint32_t quiet = (word >> 16) | 0x40u;
  return static_cast<uint16_t>((word & 0x7fffffffu) > 0x7f800000u ? quiet : rounded);
}

THIMBLE_FOR_EACH_ISA void narrow(const KernelArgs& args, int64_t begin, int64_t end) {
  const float* __restrict x = args.inputs[0].as<const float>();
  uint16_t* __restrict y = args.outputs[0].as<uint16_t>();
  for (int64_t i = begin; i < end; ++i) y[i] = to_bf16(x[i]);
}

THIMBLE_FOR_EACH_ISA void widen_bf16(const KernelArgs& args, int64_t begin, int64_t end) {
  const uint16_t* __restrict x = args.inputs[0].as<const uint16_t>();
  map_range(args.outputs[0].as<float>(), begin, end, args.adds_into(0),
            [=](int64_t i) { return std::bit_cast<float>(static_cast<uint32_t>(x[i]) << 16); });
}

THIMBLE_FOR_EACH_ISA void widen_bytes(const KernelArgs& args, int64_t begin, int64_t end) {
  const uint8_t* __restrict x = args.inputs[0].as<const uint8_t>();
  map_range(args.outputs[0].as<float>(), begin, end, args.adds_into(0),
            [=](int64_t i) { return static_cast<float>(x[i]); });
}

// Through the conversions of base/dtype.h, element by element but on every thread.
template <class From, class To>
void convert(const KernelArgs& args, int64_t begin, int64_t end) {
  const From* x = args.inputs[0].as<const From>();
  To* y = args.outputs[0].as<To>();
  for (int64_t i = begin; i < end; ++i) {
    const auto value = static_cast<float>(x[i]);
    y[i] = static_cast<To>(args.adds_into(0) ? static_cast<float>(y[i]) + value : value);
  }
}

std::unique_ptr<Kernel> make(const Signature& s) {
  const DType from = s.inputs[0].dtype, to = s.outputs[0].dtype;
  RangeLoop loop = nullptr;
  if (from == DType::f32 && to == DType::bf16) {
    loop = s.accumulate != 0 ? convert<float, BFloat16> : narrow;
  } else if (from == DType::bf16 && to == DType::f32) {
    loop = widen_bf16;
  } else if (from == DType::u8 && to == DType::f32) {
    loop = widen_bytes;
  } else if (from == DType::f32 && to == DType::f16) {
    loop = convert<float, Half>;
  } else if (from == DType::f16 && to == DType::f32) {
    loop = convert<Half, float>;
  }
  const bool fits = loop != nullptr && s.outputs[0].elements() > 0;
  return fits ? std::make_unique<Elementwise>(s, loop, 1) : nullptr;
}

}  // namespace

extern const CpuKernel cpu_cast;
const CpuKernel cpu_cast{"cast", make};

}  // namespace thimble
