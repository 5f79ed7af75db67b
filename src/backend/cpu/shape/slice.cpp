// slice: rows of neighbours.
#include "backend/cpu/shape/slice_rows.h"

namespace thimble {

extern const CpuKernel cpu_slice{"slice", make_where<SliceRows<false>, can_copy>};

}  // namespace thimble
