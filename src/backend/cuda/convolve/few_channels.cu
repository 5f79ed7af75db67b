#include <array>

#include "backend/cuda/convolve/few_channels.h"
#include "backend/cuda/cuda_kernel.h"
#include "backend/cuda/multiply/cublas_product.h"
#include "backend/cuda/numbers.cuh"
#include "backend/tunable_kernel.h"

namespace thimble {
namespace {

constexpr int kWide = 8;
constexpr int kThreads = 256;
constexpr int64_t kLargestSmall = 9;                // taps of filters that cuDNN is left to
constexpr int64_t kManyWeights = int64_t{1} << 18;  // so many fill a card without cutting sums

unsigned blocks_of(int64_t count) {
  return static_cast<unsigned>((count + kThreads - 1) / kThreads);
}

// Places of 16 bits: whatever they are, they are only moved.
__global__ void fill_channels(const uint16_t* __restrict__ from, uint16_t* __restrict__ to,
                              int64_t places, int channels) {
  const int64_t place = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (place >= places) return;
  alignas(16) uint16_t row[kWide] = {};
  for (int c = 0; c < channels; ++c) row[c] = from[place * channels + c];
  reinterpret_cast<uint4*>(to)[place] = *reinterpret_cast<const uint4*>(row);
}

template <class T>
__global__ void keep_channels(const T* __restrict__ from, T* __restrict__ to, int64_t count,
                              int channels, bool add) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= count) return;
  store(to + i, widen(from[i / channels * kWide + i % channels]), add);
}

Shape widened(const Shape& shape) { return {shape[0], shape[1], shape[2], kWide}; }

// Scratch: the wide images, the wide gradient, and that of the convolution.
class FewChannels final : public TunableKernel {
 public:
  FewChannels(CudaDevice& device, const Signature& s)
      : device_(device), dtype_(s.outputs[0].dtype) {
    Signature wide = s;
    wide.inputs[0].shape = widened(s.inputs[0].shape);
    wide.outputs[0].shape = widened(s.outputs[0].shape);
    wide.accumulate = 0;
    inner_ = make_convolution(device, ConvPass::weights, wide);
    engines_ = dynamic_cast<TunableKernel*>(inner_.get());
    images_ = wide.inputs[0];
    gradient_ = wide.outputs[0];
    use(0);
  }

  int variants() const override { return engines_->variants(); }
  int used() const override { return engines_->used(); }
  void use(int variant) override {
    engines_->use(variant);
    name = inner_->name + ", channels filled up";
    workspace = align_up(images_.bytes()) + align_up(gradient_.bytes()) + inner_->workspace;
  }

  void run(const KernelArgs& args) override {
    std::byte* const images = args.workspace;
    std::byte* const gradient = images + align_up(images_.bytes()).count;
    const auto channels = static_cast<int>(args.inputs[0].type.shape[3]);
    const int64_t places = images_.elements() / kWide;
    fill_channels<<<blocks_of(places), kThreads, 0, device_.stream>>>(
        args.inputs[0].as<uint16_t>(), reinterpret_cast<uint16_t*>(images), places, channels);
    const std::array<TensorRef, 2> in = {TensorRef{images, images_}, args.inputs[1]};
    const std::array<TensorRef, 1> out = {TensorRef{gradient, gradient_}};
    inner_->run({.attrs = args.attrs,
                 .inputs = in,
                 .outputs = out,
                 .workspace = gradient + align_up(gradient_.bytes()).count});
    const int64_t count = args.outputs[0].elements();
    with_device_type(dtype_, [&](auto tag) {
      using T = typename decltype(tag)::type;
      keep_channels<T><<<blocks_of(count), kThreads, 0, device_.stream>>>(
          reinterpret_cast<const T*>(gradient), args.outputs[0].as<T>(), count, channels,
          args.adds_into(0));
    });
    check_launch("conv2d_backward_weights");
  }

 private:
  CudaDevice& device_;
  const DType dtype_;
  std::unique_ptr<Kernel> inner_;
  TunableKernel* engines_ = nullptr;  // of the inner kernel
  TensorType images_, gradient_;
};

// Images cut into patches [N oh ow, kH kW C], which lie side by side in them: a thread for each number.
__global__ void cut_patches(const uint16_t* __restrict__ images, uint16_t* __restrict__ patches,
                            int64_t count, int rows, int columns, int down, int across) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const int64_t line = i / across;  // of a patch: (image, row of patches, patch, line of it)
  const int64_t patch = line / down, row = patch / columns;
  const int64_t y = row % rows * down + line % down, image = row / rows;
  const int64_t from = ((image * rows * down + y) * columns + patch % columns) * across;
  patches[i] = images[from + i % across];
}

// Patches that do not overlap: the gradient is one product. Scratch: the patches, and the product's.
class PatchGradient final : public Kernel {
 public:
  PatchGradient(CudaDevice& device, const Signature& s)
      : device_(device),
        product_(device, product_of(s), s.outputs[0].dtype, s.outputs[0].dtype, s.accumulate != 0,
                 scratch_limit(product_of(s), s.outputs[0].dtype)) {
    name = "cublaslt, of patches";
    workspace = align_up(s.inputs[0].bytes()) + product_.scratch();
  }

  void run(const KernelArgs& args) override {
    const TensorType &x = args.inputs[0].type, &dy = args.inputs[1].type;
    const Shape& dw = args.outputs[0].type.shape;
    const auto whole = [](int64_t number) { return static_cast<int>(number); };
    cut_patches<<<blocks_of(x.elements()), kThreads, 0, device_.stream>>>(
        args.inputs[0].as<uint16_t>(), reinterpret_cast<uint16_t*>(args.workspace), x.elements(),
        whole(dy.shape[1]), whole(dy.shape[2]), whole(dw[1]), whole(dw[2] * dw[3]));
    check_launch("conv2d_backward_weights");
    product_.run(args.inputs[1].data, args.workspace, args.outputs[0].data,
                 args.workspace + align_up(x.bytes()).count);
  }

  static bool fits(const Signature& s) {
    const Shape &x = s.inputs[0].shape, &dw = s.outputs[0].shape;
    const int64_t down = s.attrs.integer("stride", 1), pad = s.attrs.integer("pad", 0);
    const bool apart = dw[1] == down && dw[2] == s.attrs.integer("stride_w", down) && pad == 0 &&
                       s.attrs.integer("pad_w", pad) == 0 && s.attrs.integer("dilation", 1) == 1 &&
                       s.attrs.integer("dilation_w", 1) == 1;
    return apart && x[1] % dw[1] == 0 && x[2] % dw[2] == 0 && dw.elements() >= kManyWeights;
  }

 private:
  // dw [O, kH kW C] = dy [places, O], turned, by patches [places, kH kW C].
  static ProductShape product_of(const Signature& s) {
    const Shape &dy = s.inputs[1].shape, &dw = s.outputs[0].shape;
    return {
        .m = dw[0], .n = dw[1] * dw[2] * dw[3], .k = dy[0] * dy[1] * dy[2], .transpose_a = true};
  }

  CudaDevice& device_;
  CublasProduct product_;
};

}  // namespace

std::unique_ptr<Kernel> make_few_channels(CudaDevice& device, const Signature& s) {
  const TensorType &x = s.inputs[0], &dy = s.inputs[1], &dw = s.outputs[0];
  const bool halves = dw.dtype == DType::f16 || dw.dtype == DType::bf16;
  const bool fits = halves && x.dtype == dw.dtype && dy.dtype == dw.dtype &&
                    x.shape[3] == dw.shape[3] && x.shape[3] < kWide &&
                    dw.shape[1] * dw.shape[2] > kLargestSmall && x.elements() > 0 &&
                    dy.elements() > 0;
  if (!fits) return nullptr;
  if (PatchGradient::fits(s)) return std::make_unique<PatchGradient>(device, s);
  return std::make_unique<FewChannels>(device, s);
}

}  // namespace thimble
