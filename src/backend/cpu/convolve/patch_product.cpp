#include "backend/cpu/convolve/patch_product.h"

#include "backend/cpu/multiply/product.h"

namespace thimble {
namespace {

// The patches of all pixels of a grid, one a row, in images [N,height,width,C] of which one group of
// channels counts. Numbers of a patch are [kH,kW,C].
struct Patches {
  const float* images;
  int64_t height, width, pitch, channels;
  int64_t grid_h, grid_w;
  const Convolution& c;
  bool spread;  // seen from x, on y: what a gradient comes back from

  // Where along an axis a pixel's tap lies, which is `tap` away; -1: nowhere.
  int64_t along(int64_t pixel, int64_t tap, int64_t stride, int64_t pad, int64_t extent) const {
    int64_t at = pixel * stride - pad + tap;
    if (spread) {
      at = pixel + pad - tap;
      if (at < 0 || at % stride != 0) return -1;
      at /= stride;
    }
    return at < extent ? at : -1;
  }

  // `count` numbers of the patch of `row`, from number `first` on.
  void gather(int64_t row, int64_t first, int64_t count, float* to) const {
    const int64_t image = row / (grid_h * grid_w), pixel = row % (grid_h * grid_w);
    int64_t tap = first / channels, channel = first % channels;
    while (count > 0) {
      const int64_t run = std::min(count, channels - channel);
      const int64_t h =
          along(pixel / grid_w, tap / c.kernel_w * c.dilation_h, c.stride_h, c.pad_h, height);
      const int64_t w =
          along(pixel % grid_w, tap % c.kernel_w * c.dilation_w, c.stride_w, c.pad_w, width);
      if (h < 0 || w < 0) {
        std::fill_n(to, run, 0.0f);
      } else {
        std::copy_n(images + ((image * height + h) * width + w) * pitch + channel, run, to);
      }
      to += run;
      count -= run;
      channel = 0;
      ++tap;
    }
  }

  // As a left factor.
  PackedProduct::Block block(int64_t row, int64_t rows, int64_t p, int64_t count,
                             float* room) const {
    for (int64_t i = 0; i < rows; ++i) gather(row + i, p, count, room + i * count);
    return {{room, count, 1}, kTileRows * count};
  }

  // As a right factor.
  void panels(int64_t p, int64_t count, int64_t column, int64_t columns, int64_t wide,
              float* to) const {
    for (int64_t i = 0; i < count; ++i) {
      fill_row_of_panels(i, count, columns, wide, to, [&](int64_t j, int64_t some, float* row) {
        gather(p + i, column + j, some, row);
      });
    }
  }
};

// Weights [O,kH,kW,C] as a right factor with rows [kH,kW,O].
struct TurnedWeights {
  const float* weights;
  int64_t outputs, taps, channels;

  void panels(int64_t p, int64_t count, int64_t column, int64_t columns, int64_t wide,
              float* to) const {
    for (int64_t i = 0; i < count; ++i) {
      const int64_t tap = (p + i) / outputs, output = (p + i) % outputs;
      copy_row_to_panels(weights + (output * taps + tap) * channels + column, i, count, columns,
                         wide, to);
    }
  }
};

template <class Left, class Right>
struct Factors {
  Left left;
  Right right;
  float* y;
};

}  // namespace

PatchProduct::PatchProduct(ConvolutionPart part, const Convolution& c, bool add)
    : part_(part), c_(c) {
  const int64_t taps = c.kernel_h * c.kernel_w;
  const int64_t inputs = c.in_c / c.groups, outputs = c.out_c / c.groups;
  const int64_t in_pixels = c.batch * c.in_h * c.in_w, out_pixels = c.batch * c.out_h * c.out_w;
  ProductSize size = {.batch = c.groups, .add = add};
  switch (part) {
    case ConvolutionPart::forward:
      size.m = out_pixels, size.n = outputs, size.k = taps * inputs, size.y_pitch = c.out_c;
      break;
    case ConvolutionPart::backward_data:
      size.m = in_pixels, size.n = inputs, size.k = taps * outputs, size.y_pitch = c.in_c;
      break;
    case ConvolutionPart::backward_weights:
      size.m = outputs, size.n = taps * inputs, size.k = out_pixels;
      break;
  }
  product_ = PackedProduct(size, true, micro_kernel_beside_library());
}

void PatchProduct::run(const float* first, const float* second, float* result,
                       std::byte* scratch) const {
  const Convolution& c = c_;
  const int64_t taps = c.kernel_h * c.kernel_w;
  const int64_t inputs = c.in_c / c.groups, outputs = c.out_c / c.groups;
  const int64_t weights = outputs * taps * inputs;  // of a group
  const auto of_x = [&](const float* x, int64_t group) {
    return Patches{x + group * inputs, c.in_h, c.in_w, c.in_c, inputs, c.out_h, c.out_w, c, false};
  };
  switch (part_) {
    case ConvolutionPart::forward:
      product_.run(
          [&](int64_t g) {
            return Factors<Patches, ColumnsOfB>{
                of_x(first, g), {second + g * weights, taps * inputs}, result + g * outputs};
          },
          scratch);
      break;
    case ConvolutionPart::backward_data:
      product_.run(
          [&](int64_t g) {
            return Factors<Patches, TurnedWeights>{
                {first + g * outputs, c.out_h, c.out_w, c.out_c, outputs, c.in_h, c.in_w, c, true},
                {second + g * weights, outputs, taps, inputs},
                result + g * inputs};
          },
          scratch);
      break;
    case ConvolutionPart::backward_weights:
      product_.run(
          [&](int64_t g) {
            return Factors<ColumnsOfA, Patches>{
                {second + g * outputs, c.out_c}, of_x(first, g), result + g * weights};
          },
          scratch);
      break;
  }
}

}  // namespace thimble
