// adam_update_8bit: one pass, a warp for a block of 256. The second moment is rounded at random, by
// the step's number.
#include "backend/cuda/update/adam_step.cuh"
#include "backend/cuda/update/state_blocks.cuh"

namespace thimble {
namespace {

constexpr size_t kOwnInputs = 8;

__global__ void update_blocks(Numbers w, Numbers g, CodedState first, CodedState second,
                              const float* lr, const float* number, int64_t count,
                              AdamFactors factors, int64_t stream, UpdateExtras extras,
                              Numbers next_w) {
  const float factor = extras.gradient_factor();
  if (factor == 0) return;
  const UpdateRounding rounding = extras.rounding();
  const float step = *number;
  factors.begin(*lr, step);
  const int64_t rng[] = {0, static_cast<int64_t>(step), 0};
  const RandomStream random(rng, stream);
  for_each_state_block(count, [&](const LanePlace& place) {
    LaneState m = decode_state<DeviceSignedCode>(first.codes, first.scales[place.block], place);
    LaneState v = decode_state<DeviceUnsignedCode>(second.codes, second.scales[place.block], place);
    LaneState weight = load_numbers(w, place);
    const LaneState gradient = load_numbers(g, place);
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const float scaled = product(factor, gradient.at[i]);
      const float d = sum(scaled, product(factors.penalty, weight.at[i]));
      m.at[i] = factors.first(d, m.at[i]);
      v.at[i] = factors.second(d, v.at[i]);
      weight.at[i] = factors.moved(weight.at[i], m.at[i], v.at[i]);
    }
    store_weight(next_w, place, weight, rounding);
    encode_state<DeviceSignedCode>(m, first.next, first.next_scales, place);
    encode_state<DeviceUnsignedCode>(v, second.next, second.next_scales, place, [&](int h) {
      return random_thresholds(random, place.quad(h));
    });
  });
}

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  if (!on_device(s.inputs[0].dtype) || !on_device(s.inputs[1].dtype)) return nullptr;
  const ExtraInputs extras(s, kOwnInputs);
  const AdamFactors factors(s.attrs);
  const int64_t stream = s.attrs.integer("stream");
  return own_kernel([&device, factors, stream, extras](const KernelArgs& args) {
    const int64_t count = args.inputs[0].elements();
    if (count == 0) return;
    const auto moment = [&](size_t input, size_t output) {
      return CodedState{args.inputs[input].as<uint8_t>(), args.inputs[input + 1].as<float>(),
                        args.outputs[output].as<uint8_t>(), args.outputs[output + 1].as<float>()};
    };
    update_blocks<<<grid_for_state(count, device), kBlockThreads, 0, device.stream>>>(
        numbers_of(args.inputs[0]), numbers_of(args.inputs[1]), moment(2, 1), moment(4, 3),
        args.inputs[6].as<float>(), args.inputs[7].as<float>(), count, factors, stream,
        extras.of(args), numbers_of(args.outputs[0]));
    check_launch("adam_update_8bit");
  });
}

}  // namespace

extern const CudaKernel cuda_adam_update_8bit;
const CudaKernel cuda_adam_update_8bit{"adam_update_8bit", make};

}  // namespace thimble
