// slice_backward: zeros, then rows of neighbours; added into, the rows alone.
#include "backend/cpu/shape/slice_rows.h"

namespace thimble {

extern const CpuKernel cpu_slice_backward{"slice_backward", make_where<SliceRows<true>, can_copy>};

}  // namespace thimble
