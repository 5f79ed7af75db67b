// sgd_update_8bit: one pass, a warp for a block of 256.
#include "backend/cuda/update/state_blocks.cuh"

namespace thimble {
namespace {

constexpr size_t kOwnInputs = 5;

struct Settings {
  float momentum, decay;
  bool nesterov;
};

__global__ void update_blocks(Numbers w, Numbers g, CodedState momentum, const float* lr,
                              int64_t count, Settings settings, UpdateExtras extras,
                              Numbers next_w) {
  const float factor = extras.gradient_factor();
  if (factor == 0) return;
  const UpdateRounding rounding = extras.rounding();
  const float rate = *lr;
  for_each_state_block(count, [&](const LanePlace& place) {
    LaneState m =
        decode_state<DeviceSignedCode>(momentum.codes, momentum.scales[place.block], place);
    LaneState weight = load_numbers(w, place);
    const LaneState gradient = load_numbers(g, place);
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const float scaled = product(factor, gradient.at[i]);
      const float d = sum(scaled, product(settings.decay, weight.at[i]));
      m.at[i] = sum(product(settings.momentum, m.at[i]), d);
      const float along = settings.nesterov ? sum(d, product(settings.momentum, m.at[i])) : m.at[i];
      weight.at[i] = difference(weight.at[i], product(rate, along));
    }
    store_weight(next_w, place, weight, rounding);
    encode_state<DeviceSignedCode>(m, momentum.next, momentum.next_scales, place);
  });
}

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  if (!on_device(s.inputs[0].dtype) || !on_device(s.inputs[1].dtype)) return nullptr;
  const ExtraInputs extras(s, kOwnInputs);
  const Settings settings = {static_cast<float>(s.attrs.real("momentum")),
                             static_cast<float>(s.attrs.real("weight_decay", 0)),
                             s.attrs.integer("nesterov", 0) != 0};
  return own_kernel([&device, settings, extras](const KernelArgs& args) {
    const int64_t count = args.inputs[0].elements();
    if (count == 0) return;
    const CodedState momentum = {args.inputs[2].as<uint8_t>(), args.inputs[3].as<float>(),
                                 args.outputs[1].as<uint8_t>(), args.outputs[2].as<float>()};
    update_blocks<<<grid_for_state(count, device), kBlockThreads, 0, device.stream>>>(
        numbers_of(args.inputs[0]), numbers_of(args.inputs[1]), momentum,
        args.inputs[4].as<float>(), count, settings, extras.of(args), numbers_of(args.outputs[0]));
    check_launch("sgd_update_8bit");
  });
}

}  // namespace

extern const CudaKernel cuda_sgd_update_8bit;
const CudaKernel cuda_sgd_update_8bit{"sgd_update_8bit", make};

}  // namespace thimble
