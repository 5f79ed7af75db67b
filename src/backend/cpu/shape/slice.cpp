// slice: rows of neighbours.
#include "backend/cpu/shape/slice_rows.h"

namespace thimble {
namespace {

std::unique_ptr<Kernel> make(const Signature& s) {
  return can_copy(s) ? std::make_unique<SliceRows>(s, false) : nullptr;
}

}  // namespace

extern const CpuKernel cpu_slice;
const CpuKernel cpu_slice{"slice", make};

}  // namespace thimble
