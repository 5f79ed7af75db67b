#include <array>

#include "backend/cuda/convolve/few_channels.h"
#include "backend/cuda/cuda_kernel.h"
#include "backend/cuda/numbers.cuh"
#include "backend/variant_kernel.h"

namespace thimble {
namespace {

constexpr int kWide = 8;
constexpr int kThreads = 256;
constexpr int64_t kLargestSmall = 9;  // taps of filters that cuDNN is left to

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
class FewChannels final : public VariantKernel {
 public:
  FewChannels(CudaDevice& device, const Signature& s)
      : device_(device), dtype_(s.outputs[0].dtype) {
    Signature wide = s;
    wide.inputs[0].shape = widened(s.inputs[0].shape);
    wide.outputs[0].shape = widened(s.outputs[0].shape);
    wide.accumulate = 0;
    inner_ = make_convolution(device, ConvPass::weights, wide);
    engines_ = dynamic_cast<VariantKernel*>(inner_.get());
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
  VariantKernel* engines_ = nullptr;  // of the inner kernel
  TensorType images_, gradient_;
};

}  // namespace

std::unique_ptr<Kernel> make_few_channels(CudaDevice& device, const Signature& s) {
  const TensorType &x = s.inputs[0], &dy = s.inputs[1], &dw = s.outputs[0];
  const bool halves = dw.dtype == DType::f16 || dw.dtype == DType::bf16;
  const bool fits = halves && x.dtype == dw.dtype && dy.dtype == dw.dtype &&
                    x.shape[3] == dw.shape[3] && x.shape[3] < kWide &&
                    dw.shape[1] * dw.shape[2] > kLargestSmall && x.elements() > 0 &&
                    dy.elements() > 0;
  return fits ? std::make_unique<FewChannels>(device, s) : nullptr;
}

}  // namespace thimble
