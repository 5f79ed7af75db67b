// decode_groups: a group is a row; every thread a range of them.
#include "backend/cpu/cpu_kernel.h"
#include "backend/cpu/rows.h"
#include "base/number/group_quantization.h"

namespace thimble {
namespace {

THIMBLE_FOR_EACH_ISA void loop(const KernelArgs& args, int64_t begin, int64_t end) {
  const int64_t elements = args.outputs[0].elements();
  with_group_code(
      args.attrs->integer("bits"), args.attrs->integer("zeros", 0) != 0,
      [&](auto bits, auto zeros) __attribute__((always_inline)) {
        for (int64_t group = begin; group < end; ++group) {
          const int64_t first = group * kCodeGroup;
          const float* range = args.inputs[1].as<const float>() + 2 * group;
          decode_group<bits, zeros>(args.inputs[0].as<const uint8_t>() + packed_bytes(first, bits),
                                    {range[0], range[1]}, std::min(kCodeGroup, elements - first),
                                    args.outputs[0].as<float>() + first);
        }
      });
}

std::unique_ptr<Kernel> make(const Signature& s) {
  const int64_t elements = s.outputs[0].elements();
  const bool fits = s.outputs[0].dtype == DType::f32 && elements > 0;
  return fits ? std::make_unique<UnitKernel>(code_groups(elements), kCodeGroup, loop) : nullptr;
}

}  // namespace

extern const CpuKernel cpu_decode_groups{"decode_groups", make};

}  // namespace thimble
