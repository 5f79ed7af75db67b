// embed and take_rows: rows that are copied, or scaled.
#pragma once

#include "backend/cpu/cpu_kernel.h"

namespace thimble {

std::unique_ptr<Kernel> make_row_lookup(const Signature& signature);

}  // namespace thimble
