// Two sums per channel that each part of the work keeps for itself, in double, and that are then
// added up in the order of the parts: gradients of the scales and shifts of normalisations.
#pragma once

#include "backend/backend.h"
#include "backend/cpu/parallel.h"

namespace thimble {

class ChannelSums {
 public:
  ChannelSums(int parts, int64_t channels) : parts_(parts), channels_(channels) {}

  Bytes bytes() const {
    return Bytes(2 * parts_ * channels_ * static_cast<int64_t>(sizeof(double)));
  }
  double* first(std::byte* workspace, int part) const {
    return reinterpret_cast<double*>(workspace) + 2 * part * channels_;
  }
  double* second(std::byte* workspace, int part) const {
    return first(workspace, part) + channels_;
  }
  void clear(std::byte* workspace, int part) const {
    std::fill_n(first(workspace, part), 2 * channels_, 0.0);
  }
  // Writes both sums, or the first of them, to the outputs from `output` on, or adds them.
  void write(std::byte* workspace, const KernelArgs& args, size_t output, size_t sums = 2) const {
    for (size_t which = 0; which < sums; ++which) {
      float* to = args.outputs[output + which].as<float>();
      const bool add = args.adds_into(output + which);
      for (int64_t c = 0; c < channels_; ++c) {
        double sum = 0;
        for (int part = 0; part < parts_; ++part) {
          sum += (which == 0 ? first(workspace, part) : second(workspace, part))[c];
        }
        to[c] = (add ? to[c] : 0) + static_cast<float>(sum);
      }
    }
  }

 private:
  int parts_;
  int64_t channels_;
};

}  // namespace thimble
