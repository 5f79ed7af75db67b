// take_rows: rows of a table.
#include "backend/cpu/embed/row_lookup.h"

namespace thimble {

extern const CpuKernel cpu_take_rows{"take_rows", make_row_lookup};

}  // namespace thimble
