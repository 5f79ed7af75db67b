// group_norm: a sample at a time, its sums per channel first and then per group; the sample stays
// in cache between the three sweeps.
#include <cmath>

#include "backend/cpu/pointwise/elementwise.h"

namespace thimble {
namespace {

struct Geometry {
  int64_t places, channels, groups;
  bool relu;
  double epsilon;
};

template <int kChannels>
THIMBLE_INLINE void channel_sums(const float* x, const Geometry& g, float* sum) {
  float s[kChannels] = {};
  for (int64_t p = 0; p < g.places; ++p) {
    for (int c = 0; c < kChannels; ++c) s[c] += x[p * g.channels + c];
  }
  for (int c = 0; c < kChannels; ++c) sum[c] = s[c];
}

template <int kChannels>
THIMBLE_INLINE void channel_squares(const float* x, const Geometry& g, const float* center,
                                    float* squares) {
  float s[kChannels] = {}, m[kChannels];
  for (int c = 0; c < kChannels; ++c) m[c] = center[c];
  for (int64_t p = 0; p < g.places; ++p) {
    for (int c = 0; c < kChannels; ++c) {
      const float deviation = x[p * g.channels + c] - m[c];
      s[c] += deviation * deviation;
    }
  }
  for (int c = 0; c < kChannels; ++c) squares[c] = s[c];
}

// One sample; y may be x. scratch [3 * C].
THIMBLE_FOR_EACH_ISA void normalize(const float* x, const float* __restrict gamma,
                                    const float* __restrict beta, const Geometry& g,
                                    float* __restrict scratch, float* y, float* mean, float* rstd) {
  float* __restrict sums = scratch;
  float* __restrict center = scratch + g.channels;
  float* __restrict scale = scratch + 2 * g.channels;
  const int64_t per_group = g.channels / g.groups;
  const auto count = static_cast<double>(g.places * per_group);
  for_each_tile<64>(
      g.channels, [&](auto width, int64_t c)
                      __attribute__((always_inline)) { channel_sums<width>(x + c, g, sums + c); });
  for (int64_t k = 0; k < g.groups; ++k) {
    double sum = 0;
    for (int64_t c = k * per_group; c < (k + 1) * per_group; ++c) {
      sum += static_cast<double>(sums[c]);
    }
    mean[k] = static_cast<float>(sum / count);
    for (int64_t c = k * per_group; c < (k + 1) * per_group; ++c) center[c] = mean[k];
  }
  for_each_tile<32>(
      g.channels, [&](auto width, int64_t c) __attribute__((always_inline)) {
        channel_squares<width>(x + c, g, center + c, sums + c);
      });
  for (int64_t k = 0; k < g.groups; ++k) {
    double squares = 0;
    for (int64_t c = k * per_group; c < (k + 1) * per_group; ++c) {
      squares += static_cast<double>(sums[c]);
    }
    rstd[k] = static_cast<float>(1 / std::sqrt(squares / count + g.epsilon));
    for (int64_t c = k * per_group; c < (k + 1) * per_group; ++c) scale[c] = rstd[k] * gamma[c];
  }
  for (int64_t p = 0; p < g.places; ++p, x += g.channels, y += g.channels) {
    if (g.relu) {
#pragma GCC ivdep
      for (int64_t c = 0; c < g.channels; ++c) {
        const float z = (x[c] - center[c]) * scale[c] + beta[c];
        y[c] = z <= 0 ? 0 : z;
      }
    } else {
#pragma GCC ivdep
      for (int64_t c = 0; c < g.channels; ++c) y[c] = (x[c] - center[c]) * scale[c] + beta[c];
    }
  }
}

class GroupNorm final : public Kernel {
 public:
  explicit GroupNorm(const Signature& s)
      : g_{s.inputs[0].shape[1] * s.inputs[0].shape[2], s.inputs[0].shape[3],
           s.attrs.integer("groups"), s.attrs.text("act", "none") == "relu",
           s.attrs.real("epsilon", 1e-5)},
        parts_(s.inputs[0].shape[0], g_.places * g_.channels * 4) {
    name = "own";
    workspace = Bytes(parts_.count() * 3 * g_.channels * static_cast<int64_t>(sizeof(float)));
  }
  void run(const KernelArgs& args) override {
    parts_.run([&](int part, int64_t begin, int64_t end) {
      auto* scratch = reinterpret_cast<float*>(args.workspace) + part * 3 * g_.channels;
      for (int64_t n = begin; n < end; ++n) {
        const int64_t at = n * g_.places * g_.channels;
        normalize(args.inputs[0].as<const float>() + at, args.inputs[1].as<const float>(),
                  args.inputs[2].as<const float>(), g_, scratch, args.outputs[0].as<float>() + at,
                  args.outputs[1].as<float>() + n * g_.groups,
                  args.outputs[2].as<float>() + n * g_.groups);
      }
    });
  }

 private:
  const Geometry g_;
  const Parts parts_;
};

}  // namespace

extern const CpuKernel cpu_group_norm{"group_norm", make_where<GroupNorm, all_f32>};

}  // namespace thimble
