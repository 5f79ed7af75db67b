// adafactor_vector_update: two launches; the first leaves the sums of u^2.
#include "backend/cuda/adafactor.cuh"

namespace thimble {
namespace {

template <class T>
__global__ void average(const T* g, const float* v, float* next_v, int64_t count, Adafactor factor,
                        double* parts) {
  const float taken = factor.take();
  const int64_t threads = gridDim.x * int64_t{blockDim.x};
  float squares = 0;
  for (int64_t i = blockIdx.x * int64_t{blockDim.x} + threadIdx.x; i < count; i += threads) {
    const float x = widen(g[i]);
    const float after = factor.averaged(v[i], x * x + factor.epsilon, taken);
    next_v[i] = after;
    const float u = x / sqrtf(after);
    squares += u * u;
  }
  const double total = block_total<kBlockThreads>(static_cast<double>(squares));
  if (threadIdx.x == 0) parts[blockIdx.x] = total;
}

template <class T>
__global__ void move(const T* w, const T* g, const float* v, T* next_w, int64_t count,
                     Adafactor factor, const double* parts) {
  const float along = factor.length(parts, gridDim.x, count);
  const int64_t threads = gridDim.x * int64_t{blockDim.x};
  for (int64_t i = blockIdx.x * int64_t{blockDim.x} + threadIdx.x; i < count; i += threads) {
    next_w[i] = narrow<T>(factor.moved(widen(w[i]), widen(g[i]) / sqrtf(v[i]), along));
  }
}

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  if (!on_device(s.inputs[0].dtype)) return nullptr;
  const unsigned blocks = adafactor_blocks(s.inputs[0].elements(), device);
  const Adafactor settings(s.attrs);
  return own_kernel(
      [&device, blocks, settings](const KernelArgs& args) {
        const int64_t count = args.inputs[0].elements();
        if (count == 0) return;
        Adafactor factor = settings;
        factor.lr = args.inputs[3].as<float>();
        factor.step = args.inputs[4].as<float>();
        auto* const parts = reinterpret_cast<double*>(args.workspace);
        float* const next_v = args.outputs[1].as<float>();
        with_device_type(args.inputs[0].type.dtype, [&](auto tag) {
          using T = typename decltype(tag)::type;
          average<<<blocks, kBlockThreads, 0, device.stream>>>(
              args.inputs[1].as<T>(), args.inputs[2].as<float>(), next_v, count, factor, parts);
          move<<<blocks, kBlockThreads, 0, device.stream>>>(
              args.inputs[0].as<T>(), args.inputs[1].as<T>(), next_v, args.outputs[0].as<T>(),
              count, factor, parts);
        });
        check_launch("adafactor_vector_update");
      },
      adafactor_workspace(blocks));
}

}  // namespace

extern const CudaKernel cuda_adafactor_vector_update;
const CudaKernel cuda_adafactor_vector_update{"adafactor_vector_update", make};

}  // namespace thimble
