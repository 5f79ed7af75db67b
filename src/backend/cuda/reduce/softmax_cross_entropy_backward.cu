// softmax_cross_entropy_backward: every element on its own.
#include "backend/cuda/pointwise/elementwise.cuh"

namespace thimble {
namespace {

struct Settings {
  int64_t count;
  int classes;
  int64_t ignored;
  float elsewhere, on_label;  // targets
};

template <class T>
__global__ void gradients(const T* logits, const float* lse, const int32_t* labels,
                          const float* normalizer, const float* upstream, T* out, Settings s) {
  const float scale = *normalizer * *upstream;
  const int64_t threads = gridDim.x * int64_t{blockDim.x};
  for (int64_t i = blockIdx.x * int64_t{blockDim.x} + threadIdx.x; i < s.count; i += threads) {
    const int64_t r = i / s.classes;
    const int c = static_cast<int>(i - r * s.classes);
    const int32_t label = labels[r];
    const bool counts = label != s.ignored && label >= 0 && label < s.classes;
    const float p = expf(widen(logits[i]) - lse[r]);
    out[i] = narrow<T>((counts ? scale : 0) * (p - (c == label ? s.on_label : s.elsewhere)));
  }
}

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  const TensorType& logits = s.inputs[0];
  if (!on_device(logits.dtype)) return nullptr;
  const double smoothing = s.attrs.real("label_smoothing", 0);
  const double spread = smoothing / static_cast<double>(logits.shape[1]);
  const Settings settings = {logits.elements(), static_cast<int>(logits.shape[1]),
                             s.attrs.integer("ignore_index", -1), static_cast<float>(spread),
                             static_cast<float>(spread + (1 - smoothing))};
  return own_kernel([&device, settings](const KernelArgs& args) {
    if (settings.count == 0) return;
    with_device_type(args.inputs[0].type.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      gradients<<<blocks_for(settings.count, device), kBlockThreads, 0, device.stream>>>(
          args.inputs[0].as<T>(), args.inputs[1].as<float>(), args.inputs[2].as<int32_t>(),
          args.inputs[3].as<float>(), args.inputs[4].as<float>(), args.outputs[0].as<T>(),
          settings);
    });
    check_launch("softmax_cross_entropy_backward");
  });
}

}  // namespace

extern const CudaKernel cuda_softmax_cross_entropy_backward{"softmax_cross_entropy_backward", make};

}  // namespace thimble
