// group_norm_backward: a sample at a time, one sweep for the sums of its channels and one to write
// dx. The mask of a relu is recomputed.
#include "backend/cpu/normalise/channel_sums.h"
#include "backend/cpu/pointwise/elementwise.h"

namespace thimble {
namespace {

struct Geometry {
  int64_t places, channels, groups;
  bool relu;
};

// Per channel of one sample [C]: z = (x - mean) * scale + beta is what the relu saw, and with
// m = (z <= 0 ? 0 : dy), dx = scale * m + slope * (x - mean) + shift.
struct Channels {
  float *mean, *rstd, *scale, *slope, *shift, *gradient, *times_deviation;
  static constexpr int64_t kArrays = 7;

  Channels(float* scratch, int64_t channels)
      : mean(scratch),
        rstd(mean + channels),
        scale(rstd + channels),
        slope(scale + channels),
        shift(slope + channels),
        gradient(shift + channels),
        times_deviation(gradient + channels) {}
};

template <int kChannels>
THIMBLE_INLINE void sum_channels(const float* x, const float* dy, const Geometry& g,
                                 const float* mean, const float* scale, const float* beta,
                                 float* gradient, float* times_deviation) {
  float sum[kChannels] = {}, product[kChannels] = {}, m[kChannels], s[kChannels], b[kChannels];
  for (int c = 0; c < kChannels; ++c) m[c] = mean[c], s[c] = scale[c], b[c] = beta[c];
  for (int64_t p = 0; p < g.places; ++p) {
    for (int c = 0; c < kChannels; ++c) {
      const float deviation = x[p * g.channels + c] - m[c];
      const bool off = g.relu && deviation * s[c] + b[c] <= 0;
      const float d = off ? 0 : dy[p * g.channels + c];
      sum[c] += d;
      product[c] += d * deviation;
    }
  }
  for (int c = 0; c < kChannels; ++c) gradient[c] = sum[c], times_deviation[c] = product[c];
}

// One sample; dx may be dy.
THIMBLE_FOR_EACH_ISA void sample_backward(const float* x, const float* dy, const float* group_mean,
                                          const float* group_rstd, const float* gamma,
                                          const float* beta, const Geometry& g, bool add,
                                          const Channels& k, double* dgamma, double* dbeta,
                                          float* dx) {
  const int64_t per_group = g.channels / g.groups;
  for (int64_t c = 0; c < g.channels; ++c) {
    k.mean[c] = group_mean[c / per_group];
    k.rstd[c] = group_rstd[c / per_group];
    k.scale[c] = k.rstd[c] * gamma[c];
  }
  for_each_tile<32>(
      g.channels, [&](auto width, int64_t c) __attribute__((always_inline)) {
        sum_channels<width>(x + c, dy + c, g, k.mean + c, k.scale + c, beta + c, k.gradient + c,
                            k.times_deviation + c);
      });
  const double share = 1 / static_cast<double>(g.places * per_group);
  for (int64_t group = 0; group < g.groups; ++group) {
    double sum = 0, sum_normalized = 0;
    for (int64_t c = group * per_group; c < (group + 1) * per_group; ++c) {
      const auto normalized = static_cast<double>(k.times_deviation[c] * k.rstd[c]);
      sum += static_cast<double>(gamma[c]) * static_cast<double>(k.gradient[c]);
      sum_normalized += static_cast<double>(gamma[c]) * normalized;
      dgamma[c] += normalized;
      dbeta[c] += static_cast<double>(k.gradient[c]);
    }
    const float rstd = group_rstd[group];
    for (int64_t c = group * per_group; c < (group + 1) * per_group; ++c) {
      k.slope[c] = -rstd * rstd * static_cast<float>(sum_normalized * share);
      k.shift[c] = -rstd * static_cast<float>(sum * share);
    }
  }
  const float* __restrict mean = k.mean;
  const float* __restrict scale = k.scale;
  const float* __restrict slope = k.slope;
  const float* __restrict shift = k.shift;
  const bool relu = g.relu;
  for (int64_t p = 0; p < g.places; ++p) {
    const float* from = x + p * g.channels;
    const float* d = dy + p * g.channels;
    map_range(dx + p * g.channels, 0, g.channels, add, [=](int64_t c) {
      const float deviation = from[c] - mean[c];
      const bool off = relu && deviation * scale[c] + beta[c] <= 0;
      return scale[c] * (off ? 0 : d[c]) + (slope[c] * deviation + shift[c]);
    });
  }
}

class GroupNormBackward final : public Kernel {
 public:
  explicit GroupNormBackward(const Signature& s)
      : g_{s.inputs[0].shape[1] * s.inputs[0].shape[2], s.inputs[0].shape[3],
           s.attrs.integer("groups"), s.attrs.text("act", "none") == "relu"},
        parts_(s.inputs[0].shape[0], g_.places * g_.channels * 4),
        sums_(parts_.count(), g_.channels) {
    name = "own";
    workspace = sums_.bytes() + Bytes(parts_.count() * Channels::kArrays * g_.channels *
                                      static_cast<int64_t>(sizeof(float)));
  }
  void run(const KernelArgs& args) override {
    const auto in = [&](size_t i) { return args.inputs[i].as<const float>(); };
    auto* scratch = reinterpret_cast<float*>(args.workspace + sums_.bytes().count);
    parts_.run([&](int part, int64_t begin, int64_t end) {
      sums_.clear(args.workspace, part);
      const Channels channels(scratch + part * Channels::kArrays * g_.channels, g_.channels);
      for (int64_t n = begin; n < end; ++n) {
        const int64_t at = n * g_.places * g_.channels;
        sample_backward(in(0) + at, in(5) + at, in(1) + n * g_.groups, in(2) + n * g_.groups, in(3),
                        in(4), g_, args.adds_into(0), channels, sums_.first(args.workspace, part),
                        sums_.second(args.workspace, part), args.outputs[0].as<float>() + at);
      }
    });
    sums_.write(args.workspace, args, 1);
  }

 private:
  const Geometry g_;
  const Parts parts_;
  const ChannelSums sums_;
};

}  // namespace

extern const CpuKernel cpu_group_norm_backward{"group_norm_backward",
                                               make_where<GroupNormBackward, all_f32>};

}  // namespace thimble
