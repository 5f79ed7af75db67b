// where: bits that are moved, an entry of the mask at a time.
#include "ops/pointwise/where.h"

#include "backend/cpu/cpu_kernel.h"
#include "backend/cpu/parallel.h"

namespace thimble {
namespace {

// The elements of one entry of the mask; y may be a.
template <class Bits>
THIMBLE_INLINE void pick(bool first, const Bits* a, const Bits* b, int64_t count, Bits* y) {
  if (first && a == y) return;
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) y[i] = first ? a[i] : (b != nullptr ? b[i] : Bits{0});
}

template <class Bits>
THIMBLE_INLINE void pick_range(const KernelArgs& args, const WhereMask& mask, int64_t begin,
                               int64_t end) {
  const Bits* const a = args.inputs[1].as<const Bits>();
  const Bits* const b = args.inputs.size() > 2 ? args.inputs[2].as<const Bits>() : nullptr;
  for (int64_t i = begin; i < end; ++i) {
    const int64_t at = i * mask.behind;
    pick(mask.takes(i), a + at, b == nullptr ? b : b + at, mask.behind,
         args.outputs[0].as<Bits>() + at);
  }
}

THIMBLE_FOR_EACH_ISA void loop(const KernelArgs& args, int64_t begin, int64_t end) {
  const WhereMask mask(args);
  if (args.outputs[0].type.dtype == DType::f32) {
    pick_range<uint32_t>(args, mask, begin, end);
  } else {
    pick_range<uint16_t>(args, mask, begin, end);
  }
}

class Where final : public Kernel {
 public:
  explicit Where(const Signature& s)
      : parts_(s.inputs[0].elements(), s.outputs[0].elements() / s.inputs[0].elements() + 4) {
    name = "own";
  }
  void run(const KernelArgs& args) override {
    parts_.run([&](int, int64_t begin, int64_t end) { loop(args, begin, end); });
  }

 private:
  const Parts parts_;
};

}  // namespace

extern const CpuKernel cpu_where{"where", make_where<Where, stageable_output>};

}  // namespace thimble
