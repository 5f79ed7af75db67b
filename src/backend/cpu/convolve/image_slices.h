// Images that a oneDNN primitive reads or writes in f32, some at a time, and of 16-bit ones a block
// of their channels if asked. In f32 they are used where they are, the whole batch at once; 16-bit
// ones go through the workspace, in slices whose size does not grow with the batch.
#pragma once

#include "backend/cpu/convolve/convolution.h"

namespace thimble {

// Images of `c` in one slice: all of them in f32; else the most that divide the batch and whose
// inputs and outputs take about 128 KiB together, at least one.
int64_t slice_images(const Convolution& c, DType storage);

// Channels whose packed weights, `bytes` for each channel, are in the workspace at once: all of
// them in f32; else whole sixteens that divide them and take about 160 KiB, where there are such.
int64_t block_channels(int64_t channels, int64_t bytes, const Convolution& c, DType storage);

class ImageSlices {
 public:
  ImageSlices() = default;
  // `images` [N,H,W,C], `slice` of them at a time, `block` of their channels at a time.
  ImageSlices(const TensorType& images, int64_t slice, int64_t block, WorkspaceParts& parts);

  // A slice and its block of channels, by their first ones.
  struct Place {
    int64_t image = 0, channel = 0;
  };
  // The slice as f32.
  const float* read(const TensorRef& images, Place place, std::byte* workspace) const;
  // Where to write the slice, and then to bring it where it belongs. With `keep`, what is there
  // already is put in place first, to be added to.
  float* open(const TensorRef& images, Place place, std::byte* workspace, bool keep) const;
  void close(const TensorRef& images, Place place, std::byte* workspace) const;

 private:
  float* room(std::byte* workspace) const { return reinterpret_cast<float*>(workspace + at_); }
  template <class Convert>
  void for_each_run(Place place, const Convert& convert) const;

  int64_t pixels_ = 0, slice_ = 0;  // of an image; images
  int64_t channels_ = 0, block_ = 0;
  int64_t at_ = 0;  // of the room in the workspace
};

}  // namespace thimble
