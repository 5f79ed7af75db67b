#include "backend/cpu/convolve/image_slices.h"

#include "backend/cpu/parallel.h"
#include "backend/cpu/sixteen_bit.h"

namespace thimble {

int64_t slice_images(const Convolution& c, DType storage) {
  if (storage == DType::f32) return c.batch;
  const int64_t image = (c.in_h * c.in_w * c.in_c + c.out_h * c.out_w * c.out_c) *
                        static_cast<int64_t>(sizeof(float));
  int64_t images = std::clamp<int64_t>((128 << 10) / image, 1, c.batch);
  while (c.batch % images != 0) --images;
  return images;
}

int64_t block_channels(int64_t channels, int64_t bytes, const Convolution& c, DType storage) {
  if (storage == DType::f32 || c.groups > 1 || channels % 16 != 0) return channels;
  int64_t block = channels;
  for (int64_t sixteens = channels / 16; sixteens >= 1; --sixteens) {
    if (channels % (16 * sixteens) != 0) continue;
    block = 16 * sixteens;
    if (block * bytes <= (160 << 10)) break;
  }
  return block;
}

ImageSlices::ImageSlices(const TensorType& images, int64_t slice, int64_t block,
                         WorkspaceParts& parts)
    : pixels_(images.shape[1] * images.shape[2]),
      slice_(slice),
      channels_(images.shape[3]),
      block_(block) {
  if (!is_sixteen_bit(images.dtype)) return;
  at_ = parts.take(static_cast<size_t>(slice_ * pixels_ * block_) * sizeof(float));
}

// Calls convert(element in the images, element in the room, count) for runs of neighbours.
template <class Convert>
void ImageSlices::for_each_run(Place place, const Convert& convert) const {
  const int64_t first = place.image * pixels_ * channels_ + place.channel;
  if (block_ == channels_) {
    Parts(slice_ * pixels_ * channels_, 1).run([&](int, int64_t begin, int64_t end) {
      convert(first + begin, begin, end - begin);
    });
    return;
  }
  Parts(slice_ * pixels_, block_).run([&](int, int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) convert(first + p * channels_, p * block_, block_);
  });
}

const float* ImageSlices::read(const TensorRef& images, Place place, std::byte* workspace) const {
  if (images.type.dtype == DType::f32) {
    return images.as<const float>() + place.image * pixels_ * channels_;
  }
  for_each_run(place, [&](int64_t from, int64_t to, int64_t count) {
    widen(images, from, count, room(workspace) + to);
  });
  return room(workspace);
}

float* ImageSlices::open(const TensorRef& images, Place place, std::byte* workspace,
                         bool keep) const {
  if (images.type.dtype == DType::f32) {
    return images.as<float>() + place.image * pixels_ * channels_;
  }
  if (keep) read(images, place, workspace);
  return room(workspace);
}

void ImageSlices::close(const TensorRef& images, Place place, std::byte* workspace) const {
  if (images.type.dtype == DType::f32) return;
  for_each_run(place, [&](int64_t to, int64_t from, int64_t count) {
    narrow(room(workspace) + from, images, to, count);
  });
}

}  // namespace thimble
