// momentum_fold_8bit: one pass, a warp for a block of 256.
#include "backend/cuda/update/state_blocks.cuh"

namespace thimble {
namespace {

constexpr size_t kOwnInputs = 4;

__global__ void fold_blocks(CodedState momentum, Numbers g, int64_t count, const int64_t* rng,
                            int64_t stream, UpdateExtras extras) {
  const float factor = extras.gradient_factor();
  if (factor == 0) return;
  const RandomStream random(rng, stream);
  for_each_state_block(count, [&](const LanePlace& place) {
    LaneState share = load_numbers(g, place);
#pragma unroll
    for (int i = 0; i < 8; ++i) share.at[i] = product(factor, share.at[i]);
    fold_into_state(momentum, place, share, random);
  });
}

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  if (!on_device(s.inputs[2].dtype)) return nullptr;
  const ExtraInputs extras(s, kOwnInputs);
  const int64_t stream = s.attrs.integer("stream");
  return own_kernel([&device, stream, extras](const KernelArgs& args) {
    const int64_t count = args.inputs[2].elements();
    if (count == 0) return;
    const CodedState momentum = {args.inputs[0].as<uint8_t>(), args.inputs[1].as<float>(),
                                 args.outputs[0].as<uint8_t>(), args.outputs[1].as<float>()};
    fold_blocks<<<grid_for_state(count, device), kBlockThreads, 0, device.stream>>>(
        momentum, numbers_of(args.inputs[2]), count, args.inputs[3].as<int64_t>(), stream,
        extras.of(args));
    check_launch("momentum_fold_8bit");
  });
}

}  // namespace

extern const CudaKernel cuda_momentum_fold_8bit{"momentum_fold_8bit", make};

}  // namespace thimble
