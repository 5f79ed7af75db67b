// running_stats_update: both statistics in one launch.
#include "backend/cuda/elementwise.cuh"

namespace thimble {
namespace {

template <class T>
__global__ void move_statistics(const T* mean, const T* var, const T* batch_mean,
                                const T* batch_var, T* new_mean, T* new_var, int64_t count,
                                float keep, float towards_mean, float towards_var) {
  const int64_t c = blockIdx.x * int64_t{blockDim.x} + threadIdx.x;
  if (c >= count) return;
  new_mean[c] = narrow<T>(keep * widen(mean[c]) + towards_mean * widen(batch_mean[c]));
  new_var[c] = narrow<T>(keep * widen(var[c]) + towards_var * widen(batch_var[c]));
}

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  if (!on_device(s.inputs[0].dtype)) return nullptr;
  const double momentum = s.attrs.real("momentum", 0.1);
  const double samples = static_cast<double>(s.attrs.integer("count"));
  const float keep = static_cast<float>(1 - momentum), towards_mean = static_cast<float>(momentum);
  const float towards_var = static_cast<float>(momentum * (samples / (samples - 1)));
  return own_kernel([&device, keep, towards_mean, towards_var](const KernelArgs& args) {
    const int64_t count = args.outputs[0].elements();
    if (count == 0) return;
    with_device_type(args.inputs[0].type.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      const unsigned blocks = static_cast<unsigned>((count + kBlockThreads - 1) / kBlockThreads);
      move_statistics<T><<<blocks, kBlockThreads, 0, device.stream>>>(
          args.inputs[0].as<T>(), args.inputs[1].as<T>(), args.inputs[2].as<T>(),
          args.inputs[3].as<T>(), args.outputs[0].as<T>(), args.outputs[1].as<T>(), count, keep,
          towards_mean, towards_var);
    });
    check_launch("running_stats_update");
  });
}

}  // namespace

extern const CudaKernel cuda_running_stats_update;
const CudaKernel cuda_running_stats_update{"running_stats_update", make};

}  // namespace thimble
