// embed: rows of a table.
#include "backend/cpu/embed/row_lookup.h"

namespace thimble {

extern const CpuKernel cpu_embed{"embed", make_row_lookup};

}  // namespace thimble
