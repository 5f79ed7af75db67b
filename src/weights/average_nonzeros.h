// The mean of sparse weights over checkpoints between which nonzeros moved.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "weights/safetensors.h"

namespace thimble {

// Whether a tensor of a checkpoint says where the nonzeros of a sparse weight are: its mask, or its
// place in the pool.
bool places_nonzeros(const SafetensorsFile& file, std::string_view name);

// The pool of nonzeros of the first file, each of them its mean over all files: a weight that has
// no nonzero there counts as 0, as it did in training. Nonzeros that only other files have are left
// out, so that the mean is as sparse as the first file. Masks and one weight's nonzeros at a time
// are in memory, and the pool. UserError where a file contradicts itself.
std::vector<std::byte> mean_of_nonzeros(std::span<const std::unique_ptr<SafetensorsFile>> files);

}  // namespace thimble
