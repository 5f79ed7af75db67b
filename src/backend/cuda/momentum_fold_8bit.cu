// momentum_fold_8bit: one pass, a warp for a block of 256.
#include "backend/cuda/state_blocks.cuh"

namespace thimble {
namespace {

__global__ void fold_blocks(const uint8_t* codes, const float* scales, Numbers g, int64_t count,
                            const int64_t* rng, int64_t stream, uint8_t* next, float* next_scales) {
  const RandomStream random(rng, stream);
  for_each_state_block(count, [&](const LanePlace& place) {
    LaneState m = decode_state<DeviceSignedCode>(codes, scales[place.block], place);
    const LaneState gradient = load_numbers(g, place);
#pragma unroll
    for (int i = 0; i < 8; ++i) m.at[i] = sum(m.at[i], gradient.at[i]);
    encode_state<DeviceSignedCode>(m, next, next_scales, place,
                                   [&](int h) { return random_thresholds(random, place.quad(h)); });
  });
}

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  if (!on_device(s.inputs[2].dtype)) return nullptr;
  const int64_t stream = s.attrs.integer("stream");
  return own_kernel([&device, stream](const KernelArgs& args) {
    const int64_t count = args.inputs[2].elements();
    if (count == 0) return;
    fold_blocks<<<grid_for_state(count, device), kBlockThreads, 0, device.stream>>>(
        args.inputs[0].as<uint8_t>(), args.inputs[1].as<float>(), numbers_of(args.inputs[2]), count,
        args.inputs[3].as<int64_t>(), stream, args.outputs[0].as<uint8_t>(),
        args.outputs[1].as<float>());
    check_launch("momentum_fold_8bit");
  });
}

}  // namespace

extern const CudaKernel cuda_momentum_fold_8bit;
const CudaKernel cuda_momentum_fold_8bit{"momentum_fold_8bit", make};

}  // namespace thimble
