// conv2d_backward_data, in one of two ways.
//
// Stride 1: a forward convolution of dy with the weights turned by 180 degrees, inputs and outputs
// exchanged. oneDNN's forward kernel is 1.6 times as fast as its backward one, and can add.
// Other strides: the backward primitive; to add, a few images at a time go through the workspace, in
// f32 so that 16-bit sums are rounded once.
#include "backend/cpu/convolve/forward_kernel.h"
#include "backend/cpu/cpu_kernel.h"
#include "backend/cpu/parallel.h"
#include "backend/cpu/sixteen_bit.h"

namespace thimble {
namespace {

// Images of a slice. In f32, where the result is added, the largest divisor of `batch` whose images
// fit a workspace of about a megabyte.
int64_t images_at_once(const Convolution& c, DType storage, bool add) {
  if (storage != c.dtype) return slice_images(c, storage);
  if (!add) return c.batch;
  const int64_t image = c.in_h * c.in_w * c.in_c * static_cast<int64_t>(sizeof(float));
  int64_t images = std::clamp<int64_t>((1 << 20) / image, 1, c.batch);
  while (c.batch % images != 0) --images;
  return images;
}

// Adds f32 numbers to 16-bit ones.
void add_wide(const float* x, const TensorRef& y, int64_t first, int64_t count) {
  Parts(count, 8).run([&](int, int64_t begin, int64_t end) {
    constexpr int64_t kPiece = 1024;
    float sums[kPiece];
    for (int64_t i = begin; i < end; i += kPiece) {
      const int64_t some = std::min(kPiece, end - i);
      widen(y, first + i, some, sums);
      for (int64_t j = 0; j < some; ++j) sums[j] += x[i + j];
      narrow(sums, y, first + i, some);
    }
  });
}

// To add 16-bit images, the primitive has to give f32.
Convolution with_result(Convolution c, bool add) {
  if (add) c.result = DType::f32;
  return c;
}

class BackwardData final : public Kernel {
 public:
  BackwardData(const Convolution& c, const Signature& s)
      : batch_(c.batch),
        add_(s.accumulate != 0),
        as_stored_(s.inputs[1].dtype == c.dtype),
        images_(images_at_once(c, s.inputs[1].dtype, s.accumulate != 0)),
        convolve_(ConvolutionPart::backward_data, with_result(c.of(images_), add_)) {
    WorkspaceParts parts;
    weights_ = PackedWeights(c, c, s.inputs[0].dtype, convolve_.weights(), false);
    packed_at_ = parts.take(weights_.bytes());
    dx_step_ = c.in_h * c.in_w * c.in_c;
    dy_step_ = c.out_h * c.out_w * c.out_c;
    if (!as_stored_) {
      dy_ = ImageSlices(s.inputs[1], images_, c.out_c, parts);
      dx_ = ImageSlices(s.outputs[0], images_, c.in_c, parts);
    }
    if (adds_wide(c)) {
      images_at_ = parts.take(static_cast<size_t>(images_ * dx_step_) * sizeof(float));
    } else if (add_) {
      const dnnl::memory::desc x = c.of(images_).x();
      add_images_ = dnnl_reorder(dnnl::engine(dnnl::engine::kind::cpu, 0), x, x, true);
      images_at_ = parts.take(x.get_size());
    }
    scratch_at_ = parts.take(convolve_.scratch_bytes());
    name = convolve_.name();
    workspace = parts.total();
  }

  void run(const KernelArgs& args) override {
    std::byte* room = args.workspace;
    const void* weights = weights_.pack(args.inputs[0], 0, room + packed_at_);
    if (as_stored_) {
      run_as_stored(args, weights);
      return;
    }
    for (int64_t n = 0; n < batch_; n += images_) {
      const float* dy = dy_.read(args.inputs[1], {n, 0}, room);
      float* dx = dx_.open(args.outputs[0], {n, 0}, room, add_);
      void* images = add_ ? static_cast<void*>(room + images_at_) : dx;
      convolve_.run(dy, weights, images, room + scratch_at_);
      if (add_) add_images_.run({images, dx});
      dx_.close(args.outputs[0], {n, 0}, room);
    }
  }

 private:
  bool adds_wide(const Convolution& c) const { return add_ && c.dtype != DType::f32; }

  void run_as_stored(const KernelArgs& args, const void* weights) {
    const int64_t size = size_of(args.outputs[0].type.dtype);
    auto* const sums = reinterpret_cast<float*>(args.workspace + images_at_);
    for (int64_t n = 0; n < batch_; n += images_) {
      const void* const dy = args.inputs[1].as<const std::byte>() + n * dy_step_ * size;
      void* const dx = args.outputs[0].as<std::byte>() + n * dx_step_ * size;
      convolve_.run(dy, weights, add_ ? sums : dx, args.workspace + scratch_at_);
      if (add_images_) {
        add_images_.run({sums, dx});
      } else if (add_) {
        add_wide(sums, args.outputs[0], n * dx_step_, images_ * dx_step_);
      }
    }
  }

  const int64_t batch_;
  const bool add_, as_stored_;
  const int64_t images_;
  int64_t dx_step_ = 0, dy_step_ = 0;
  ConvolutionCall convolve_;
  PackedWeights weights_;
  ImageSlices dy_, dx_;
  DnnlCall add_images_;
  int64_t packed_at_ = 0, images_at_ = 0, scratch_at_ = 0;
};

std::unique_ptr<Kernel> make(const Signature& s) {
  if (!one_stageable_type(s)) return nullptr;
  const Convolution c = convolution_of(s.outputs[0], s.inputs[0], s.inputs[1], s.attrs);
  std::unique_ptr<Kernel> kernel;
  const Convolution turned = c.turned();
  if (c.stride_h == 1 && c.stride_w == 1 && turned.pad_h >= 0 && turned.pad_w >= 0) {
    kernel = make_narrow_or_staged<ForwardKernel>(turned, s, size_t{1}, true);
  }
  if (kernel == nullptr) kernel = make_narrow_or_staged<BackwardData>(c, s);
  return kernel;
}

}  // namespace

extern const CpuKernel cpu_conv2d_backward_data{"conv2d_backward_data", make};

}  // namespace thimble
