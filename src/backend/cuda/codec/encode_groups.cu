// encode_groups: one pass, a warp for a group.
#include "backend/cuda/codec/group_codes.cuh"
#include "backend/cuda/pointwise/unfused.cuh"
#include "base/number/random_stream.h"

namespace thimble {
namespace {

constexpr unsigned kAllLanes = 0xffffffffu;

template <int kBits, bool kZeros, class T>
__global__ void encode(const T* x, const int64_t* rng, int64_t stream, uint8_t* codes,
                       float2* ranges, int64_t count) {
  constexpr unsigned kFirst = kZeros ? 1 : 0;          // the level of `low`
  constexpr float kSteps = (1 << kBits) - 1 - kFirst;  // from there to `high`
  const RandomStream random(rng, stream);
  const int lane = threadIdx.x % 32;
  const int64_t warps = gridDim.x * int64_t{blockDim.x / 32};
  const int64_t groups = code_groups(count);
  for (int64_t group = blockIdx.x * int64_t{blockDim.x / 32} + threadIdx.x / 32; group < groups;
       group += warps) {
    const int64_t first = group * kCodeGroup + 8 * lane;
    const Eight<T> from = load_eight(x, first, count);
    float number[8];
    float low = INFINITY, high = kZeros ? 0 : -INFINITY;
    bool finite = true;
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      number[e] = widen(from.at[e]);
      if (first + e < count) {
        if (!kZeros || number[e] > 0) low = fminf(low, number[e]);
        high = fmaxf(high, number[e]);
        finite = finite && isfinite(number[e]);
      }
    }
    for (int step = 16; step > 0; step /= 2) {
      low = fminf(low, __shfl_xor_sync(kAllLanes, low, step));
      high = fmaxf(high, __shfl_xor_sync(kAllLanes, high, step));
    }
    finite = __all_sync(kAllLanes, finite) != 0;
    if (kZeros && !(high > 0)) low = high;  // zeros alone
    const float step = ratio(difference(high, low), kSteps);
    const bool codable = finite && (kZeros ? step >= 0 : step > 0);
    uint64_t levels = 0;
    if (codable) {
      const float per_step = kZeros && step == 0 ? 0 : ratio(1, step);
#pragma unroll
      for (int q = 0; q < 2; ++q) {
        const PhiloxCounter words = random.words(first / 4 + q);
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          const int e = 4 * q + j;
          const float up = sum(product(difference(number[e], low), per_step),
                               uniform_from(words[static_cast<size_t>(j)]));
          const auto above = static_cast<unsigned>(static_cast<int>(up < kSteps ? up : kSteps));
          const unsigned level = kZeros && !(number[e] > 0) ? 0 : above + kFirst;
          if (first + e < count) levels |= static_cast<uint64_t>(level) << (kBits * e);
        }
      }
    } else if (kZeros) {
#pragma unroll
      for (int e = 0; e < 8; ++e) {
        if (first + e < count) levels |= uint64_t{1} << (kBits * e);
      }
    }
    store_codes<kBits>(codes, first, count, static_cast<LaneCodes<kBits>>(levels));
    if (lane == 0) {
      const float from_low = codable || (finite && step == 0) ? low : NAN;
      ranges[group] = {from_low, codable ? step : 0};
    }
  }
}

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  if (!on_device(s.inputs[0].dtype)) return nullptr;
  const int64_t bits = s.attrs.integer("bits"), stream = s.attrs.integer("stream");
  const bool zeros = s.attrs.integer("zeros", 0) != 0;
  return own_kernel([&device, bits, stream, zeros](const KernelArgs& args) {
    const int64_t count = args.inputs[0].elements();
    if (count == 0) return;
    with_device_type(args.inputs[0].type.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      const auto launch = [&](auto kernel) {
        kernel<<<blocks_for(32 * code_groups(count), device), kBlockThreads, 0, device.stream>>>(
            args.inputs[0].as<T>(), args.inputs[1].as<int64_t>(), stream,
            args.outputs[0].as<uint8_t>(), args.outputs[1].as<float2>(), count);
      };
      with_group_code(bits, zeros, [&](auto known_bits, auto known_zeros) {
        launch(encode<known_bits.value, known_zeros.value, T>);
      });
    });
    check_launch("encode_groups");
  });
}

}  // namespace

extern const CudaKernel cuda_encode_groups{"encode_groups", make};

}  // namespace thimble
