// copy: one pass of 16 bytes a thread at a time; the last few by themselves.
#include "backend/cuda/shape/rows.cuh"

namespace thimble {
namespace {

template <class Unit, class Rest>
__global__ void copy_units(const Unit* from, Unit* to, int64_t units, const Rest* rest_from,
                           Rest* rest_to, int rest, bool add) {
  const int64_t threads = gridDim.x * int64_t{blockDim.x};
  const int64_t thread = blockIdx.x * int64_t{blockDim.x} + threadIdx.x;
  for (int64_t i = thread; i < units; i += threads) put(to + i, from[i], add);
  if (thread < rest) put(rest_to + thread, rest_from[thread], add);
}

template <class Unit, class Rest>
void launch(const KernelArgs& args, const CudaDevice& device) {
  const int64_t bytes = args.outputs[0].type.bytes().count;
  const int64_t units = bytes / static_cast<int64_t>(sizeof(Unit));
  const int64_t done = units * static_cast<int64_t>(sizeof(Unit));
  const auto rest = static_cast<int>((bytes - done) / static_cast<int64_t>(sizeof(Rest)));
  const std::byte* const from = args.inputs[0].as<std::byte>();
  std::byte* const to = args.outputs[0].as<std::byte>();
  copy_units<<<blocks_for(units + rest, device), kBlockThreads, 0, device.stream>>>(
      reinterpret_cast<const Unit*>(from), reinterpret_cast<Unit*>(to), units,
      reinterpret_cast<const Rest*>(from + done), reinterpret_cast<Rest*>(to + done), rest,
      args.adds_into(0));
  check_launch("copy");
}

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  if (!can_move(s)) return nullptr;
  return own_kernel([&device](const KernelArgs& args) {
    const DType dtype = args.outputs[0].type.dtype;
    const bool add = args.adds_into(0);
    if (args.outputs[0].elements() == 0) return;
    if (!add) {
      if (args.inputs[0].data != args.outputs[0].data) launch<uint4, uint8_t>(args, device);
    } else if (dtype == DType::u8) {
      launch<Single<uint8_t>, Single<uint8_t>>(args, device);
    } else if (dtype == DType::i32) {
      launch<Single<int32_t>, Single<int32_t>>(args, device);
    } else if (dtype == DType::i64) {
      launch<Single<int64_t>, Single<int64_t>>(args, device);
    } else {
      with_device_type(dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        launch<Pack<T>, Single<T>>(args, device);
      });
    }
  });
}

}  // namespace

extern const CudaKernel cuda_copy{"copy", make};

}  // namespace thimble
