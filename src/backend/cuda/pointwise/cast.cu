// cast: one pass, eight elements a thread at a time; rounds once.
#include "backend/cuda/pointwise/eights.cuh"

namespace thimble {
namespace {

template <class T>
__device__ float number(T x) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<float>(x);
  } else {
    return widen(x);
  }
}

template <class From, class To>
__global__ void cast_elements(const From* from, To* to, int64_t count, bool add) {
  const int64_t threads = gridDim.x * int64_t{blockDim.x};
  const int64_t thread = blockIdx.x * int64_t{blockDim.x} + threadIdx.x;
  const int64_t whole = count / 8;
  for (int64_t i = thread; i < whole; i += threads) {
    const Eight<From> x = reinterpret_cast<const Eight<From>*>(from)[i];
    Eight<To>* const there = reinterpret_cast<Eight<To>*>(to) + i;
    Eight<To> y;
    if (add) y = *there;
#pragma unroll
    for (int e = 0; e < 8; ++e) store(&y.at[e], number(x.at[e]), add);
    *there = y;
  }
  for (int64_t i = whole * 8 + thread; i < count; i += threads) {
    store(to + i, number(from[i]), add);
  }
}

// Calls body(TypeTag<T>{}) with the device's type for anything but f64.
template <class Body>
void with_source_type(DType dtype, Body&& body) {
  if (dtype == DType::u8) return body(TypeTag<uint8_t>{});
  if (dtype == DType::i32) return body(TypeTag<int32_t>{});
  if (dtype == DType::i64) return body(TypeTag<int64_t>{});
  with_device_type(dtype, body);
}

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  if (s.inputs[0].dtype == DType::f64 || !on_device(s.outputs[0].dtype)) return nullptr;
  return own_kernel([&device](const KernelArgs& args) {
    const int64_t count = args.outputs[0].elements();
    if (count == 0) return;
    const unsigned blocks = blocks_for((count + 7) / 8, device);
    with_source_type(args.inputs[0].type.dtype, [&](auto from) {
      with_device_type(args.outputs[0].type.dtype, [&](auto to) {
        using From = typename decltype(from)::type;
        using To = typename decltype(to)::type;
        cast_elements<<<blocks, kBlockThreads, 0, device.stream>>>(
            args.inputs[0].as<From>(), args.outputs[0].as<To>(), count, args.adds_into(0));
      });
    });
    check_launch("cast");
  });
}

}  // namespace

extern const CudaKernel cuda_cast{"cast", make};

}  // namespace thimble
