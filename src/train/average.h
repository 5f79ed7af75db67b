// The mean of the weights of several checkpoints of one run: often better than the last of them.
#pragma once

#include <span>
#include <string>

namespace thimble {

// Writes the mean of the files' tensors, as checkpoints have them, tensor by tensor and piece by piece:
// no tensor is ever whole in memory. Whole numbers (where the nonzeros of sparse weights are) must be the
// same in all of them. UserError where the files do not hold the same model.
void average_weights(std::span<const std::string> paths, const std::string& out);

}  // namespace thimble
