// Values of which every rank has a part, as the one tensor that they are: so that files do not know
// how many ranks there were.
#pragma once

#include <span>

#include "execute/program.h"

namespace thimble {

// The type of all parts together; of others their own.
TensorType whole_type(const Value& value);

// Bytes of the whole from `offset` on. Of a part, all ranks call it at the same time and get the
// same.
void read_whole(Program& program, ValueId value, int64_t offset, std::span<std::byte> out);

// The other way; of a part, what belongs to this rank is taken.
void write_whole(Program& program, ValueId value, int64_t offset, std::span<const std::byte> in);

// The first element of the whole that this rank has.
int64_t first_element(const Program& program, ValueId value);

}  // namespace thimble
