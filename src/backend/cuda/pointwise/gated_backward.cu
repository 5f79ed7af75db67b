// gated_backward: a pack of neighbours per thread, both gradients in one pass. They may lie where
// any two of the inputs do.
#include "backend/cuda/pointwise/elementwise.cuh"
#include "backend/cuda/pointwise/gates.cuh"

namespace thimble {
namespace {

template <class T>
struct Gradients {
  const T *a, *b, *dy;
  T *da, *db;
  bool add_a, add_b;
};

template <class T, class G>
__device__ void gradients_at(T a, T b, T dy, T* da, T* db, const Gradients<T>& g, const G& gate) {
  const float at = widen(a), d = widen(dy);
  store(da, d * widen(b) * gate.slope(at), g.add_a);
  store(db, d * gate.value(at), g.add_b);
}

template <class T, class G>
__global__ void __launch_bounds__(kBlockThreads)
    gated_gradients(Gradients<T> g, int64_t count, G gate) {
  constexpr int kPack = Pack<T>::kCount;
  const int64_t thread = blockIdx.x * int64_t{blockDim.x} + threadIdx.x;
  const int64_t threads = gridDim.x * int64_t{blockDim.x};
  const int64_t packs = count / kPack;
  for (int64_t p = thread; p < packs; p += threads) {
    const Pack<T> a = reinterpret_cast<const Pack<T>*>(g.a)[p];
    const Pack<T> b = reinterpret_cast<const Pack<T>*>(g.b)[p];
    const Pack<T> dy = reinterpret_cast<const Pack<T>*>(g.dy)[p];
    Pack<T>*const to_a = reinterpret_cast<Pack<T>*>(g.da) + p, *const to_b =
                                                                   reinterpret_cast<Pack<T>*>(
                                                                       g.db) +
                                                                   p;
    Pack<T> da{}, db{};
    if (g.add_a) da = *to_a;
    if (g.add_b) db = *to_b;
#pragma unroll
    for (int e = 0; e < kPack; ++e) {
      gradients_at(a.at[e], b.at[e], dy.at[e], &da.at[e], &db.at[e], g, gate);
    }
    *to_a = da;
    *to_b = db;
  }
  for (int64_t i = packs * kPack + thread; i < count; i += threads) {
    gradients_at(g.a[i], g.b[i], g.dy[i], g.da + i, g.db + i, g, gate);
  }
}

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  if (!on_device(s.outputs[0].dtype)) return nullptr;
  const Gate gate = gate_of("gated_backward", s.attrs);
  return own_kernel([&device, gate](const KernelArgs& args) {
    const int64_t count = args.outputs[0].elements();
    if (count == 0) return;
    with_device_type(args.outputs[0].type.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      const Gradients<T> g = {args.inputs[0].as<T>(),  args.inputs[1].as<T>(),
                              args.inputs[2].as<T>(),  args.outputs[0].as<T>(),
                              args.outputs[1].as<T>(), args.adds_into(0),
                              args.adds_into(1)};
      const unsigned blocks = blocks_for((count + Pack<T>::kCount - 1) / Pack<T>::kCount, device);
      with_gate<DeviceGates>(gate, [&](auto one) {
        gated_gradients<<<blocks, kBlockThreads, 0, device.stream>>>(g, count, one);
      });
    });
    check_launch("the gradient of gated");
  });
}

}  // namespace

extern const CudaKernel cuda_gated_backward{"gated_backward", make};

}  // namespace thimble
