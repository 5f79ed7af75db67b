// sgd_folded_update_8bit: one pass, a warp for a block of 256.
#include "backend/cuda/update/state_blocks.cuh"

namespace thimble {
namespace {

constexpr size_t kOwnInputs = 4;

__global__ void move_blocks(Numbers w, const uint8_t* codes, const float* scales, const float* lr,
                            int64_t count, UpdateExtras extras, Numbers next_w) {
  if (extras.gradient_factor() == 0) return;
  const UpdateRounding rounding = extras.rounding();
  const float rate = *lr;
  for_each_state_block(count, [&](const LanePlace& place) {
    const LaneState m = decode_state<DeviceSignedCode>(codes, scales[place.block], place);
    LaneState weight = load_numbers(w, place);
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      weight.at[i] = difference(weight.at[i], product(rate, m.at[i]));
    }
    store_weight(next_w, place, weight, rounding);
  });
}

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  if (!on_device(s.inputs[0].dtype)) return nullptr;
  const ExtraInputs extras(s, kOwnInputs);
  return own_kernel([&device, extras](const KernelArgs& args) {
    const int64_t count = args.inputs[0].elements();
    if (count == 0) return;
    move_blocks<<<grid_for_state(count, device), kBlockThreads, 0, device.stream>>>(
        numbers_of(args.inputs[0]), args.inputs[1].as<uint8_t>(), args.inputs[2].as<float>(),
        args.inputs[3].as<float>(), count, extras.of(args), numbers_of(args.outputs[0]));
    check_launch("sgd_folded_update_8bit");
  });
}

}  // namespace

extern const CudaKernel cuda_sgd_folded_update_8bit;
const CudaKernel cuda_sgd_folded_update_8bit{"sgd_folded_update_8bit", make};

}  // namespace thimble
