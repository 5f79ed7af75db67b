// conv2d_backward_data, in one of two ways.
//
// Stride 1: a forward convolution of dy with the weights turned by 180 degrees, inputs and outputs
// exchanged. oneDNN's forward kernel is 1.6 times as fast as its backward one, and can add.
// Other strides: the backward primitive; to add, a few images at a time go through the workspace.
#include "backend/cpu/convolve/forward_kernel.h"
#include "backend/cpu/cpu_kernel.h"

namespace thimble {
namespace {

// Images of a slice. In f32, where the result is added, the largest divisor of `batch` whose images
// fit a workspace of about a megabyte.
int64_t images_at_once(const Convolution& c, DType storage, bool add) {
  if (storage != DType::f32 || !add) return slice_images(c, storage);
  const int64_t image = c.in_h * c.in_w * c.in_c * static_cast<int64_t>(sizeof(float));
  int64_t images = std::clamp<int64_t>((1 << 20) / image, 1, c.batch);
  while (c.batch % images != 0) --images;
  return images;
}

class BackwardData final : public Kernel {
 public:
  BackwardData(const Convolution& c, const Signature& s)
      : batch_(c.batch),
        add_(s.accumulate != 0),
        images_(images_at_once(c, s.inputs[1].dtype, s.accumulate != 0)),
        convolve_(ConvolutionPart::backward_data, c.of(images_)) {
    WorkspaceParts parts;
    weights_ = PackedWeights(c, c, s.inputs[0].dtype, convolve_.weights(), false);
    packed_at_ = parts.take(weights_.bytes());
    dy_ = ImageSlices(s.inputs[1], images_, c.out_c, parts);
    dx_ = ImageSlices(s.outputs[0], images_, c.in_c, parts);
    if (add_) {
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
  const int64_t batch_;
  const bool add_;
  const int64_t images_;
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
    kernel = make_if_supported<ForwardKernel>(turned, s, size_t{1}, true);
  }
  if (kernel == nullptr) kernel = make_if_supported<BackwardData>(c, s);
  return kernel;
}

}  // namespace

extern const CpuKernel cpu_conv2d_backward_data{"conv2d_backward_data", make};

}  // namespace thimble
