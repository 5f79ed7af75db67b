// slice_backward: zeros, then rows of neighbours; added into, the rows alone.
#include "backend/cpu/shape/slice_rows.h"

namespace thimble {
namespace {

std::unique_ptr<Kernel> make(const Signature& s) {
  return can_copy(s) ? std::make_unique<SliceRows>(s, true) : nullptr;
}

}  // namespace

extern const CpuKernel cpu_slice_backward;
const CpuKernel cpu_slice_backward{"slice_backward", make};

}  // namespace thimble
