// The mean of the weights of several checkpoints of one run: often better than the last of them.
#pragma once

#include <span>
#include <string>

namespace thimble {

// Writes the mean of the files' tensors, as checkpoints have them, tensor by tensor and piece by
// piece: none but the pool of sparse weights is ever whole in memory. Sparse weights are nonzero
// where they are in the first file (average_nonzeros.h); other whole numbers must be the same in
// all files. UserError where the files do not hold the same model.
void average_weights(std::span<const std::string> paths, const std::string& out);

}  // namespace thimble
