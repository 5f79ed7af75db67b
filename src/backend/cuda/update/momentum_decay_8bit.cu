// momentum_decay_8bit: one pass, a warp for a block of 256. Without weight decay only scales
// change.
#include "backend/cuda/update/state_blocks.cuh"

namespace thimble {
namespace {

__global__ void decay_blocks(const uint8_t* codes, const float* scales, Numbers w, int64_t count,
                             float momentum, float decay, uint8_t* next, float* next_scales) {
  for_each_state_block(count, [&](const LanePlace& place) {
    const float scale = product(momentum, scales[place.block]);
    LaneState m = decode_state<DeviceSignedCode>(codes, scale, place);
    const LaneState weight = load_numbers(w, place);
#pragma unroll
    for (int i = 0; i < 8; ++i) m.at[i] = sum(m.at[i], product(decay, weight.at[i]));
    encode_state<DeviceSignedCode>(m, next, next_scales, place);
  });
}

__global__ void decay_scales(const float* scales, int64_t count, float momentum,
                             float* next_scales) {
  const int64_t threads = gridDim.x * int64_t{blockDim.x};
  for (int64_t i = blockIdx.x * int64_t{blockDim.x} + threadIdx.x; i < count; i += threads) {
    next_scales[i] = product(momentum, scales[i]);
  }
}

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  if (!on_device(s.inputs[2].dtype)) return nullptr;
  const auto momentum = static_cast<float>(s.attrs.real("momentum"));
  const auto decay = static_cast<float>(s.attrs.real("weight_decay", 0));
  return own_kernel([&device, momentum, decay](const KernelArgs& args) {
    const int64_t count = args.inputs[2].elements();
    if (count == 0) return;
    const float* const scales = args.inputs[1].as<float>();
    float* const next_scales = args.outputs[1].as<float>();
    if (decay != 0) {
      decay_blocks<<<grid_for_state(count, device), kBlockThreads, 0, device.stream>>>(
          args.inputs[0].as<uint8_t>(), scales, numbers_of(args.inputs[2]), count, momentum, decay,
          args.outputs[0].as<uint8_t>(), next_scales);
    } else {
      if (args.inputs[0].data != args.outputs[0].data) {
        check(cudaMemcpyAsync(args.outputs[0].data, args.inputs[0].data, static_cast<size_t>(count),
                              cudaMemcpyDeviceToDevice, device.stream),
              "copying codes");
      }
      decay_scales<<<blocks_for(code_blocks(count), device), kBlockThreads, 0, device.stream>>>(
          scales, code_blocks(count), momentum, next_scales);
    }
    check_launch("momentum_decay_8bit");
  });
}

}  // namespace

extern const CudaKernel cuda_momentum_decay_8bit{"momentum_decay_8bit", make};

}  // namespace thimble
