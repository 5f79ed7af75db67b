#include "backend/cpu/convolve/time_conv.h"

#include "backend/cpu/pointwise/random_words.h"
#include "backend/cpu/reduce/softmax_rows.h"

namespace thimble {
namespace {

THIMBLE_FOR_EACH_ISA void softmax_taps(const float* w, int64_t count, float* p) {
  const float largest = row_maximum(w, count);
  for (int64_t k = 0; k < count; ++k) p[k] = vector_exp(w[k] - largest);
  const auto share = static_cast<float>(1 / row_sum(count, [=](int64_t k) { return p[k]; }));
  for (int64_t k = 0; k < count; ++k) p[k] *= share;
}

// factors[i] = 0 or 1 / (1 - p), by the random words of elements from `first` on.
THIMBLE_FOR_EACH_ISA void draw_factors(const RandomStream& random, int64_t first, int64_t count,
                                       double p, float* factors) {
  const auto drop = static_cast<float>(p), scale = static_cast<float>(1 / (1 - p));
  uint32_t words[kRandomGroup];
  for (int64_t done = 0; done < count;) {
    const int64_t element = first + done, begin = element % kRandomGroup;
    const int64_t here = std::min(count - done, kRandomGroup - begin);
    random_words(random, element / kRandomGroup, words);
    for (int64_t i = 0; i < here; ++i)
      factors[done + i] = uniform_of(words[begin + i]) >= drop ? scale : 0;
    done += here;
  }
}

THIMBLE_FOR_EACH_ISA void multiply(const float* a, int64_t count, float* b) {
  for (int64_t i = 0; i < count; ++i) b[i] *= a[i];
}

// y[c] = sum over taps k in [begin, end) of p[k] * x[k * pitch + c].
THIMBLE_FOR_EACH_ISA void convolve(const float* p, int64_t begin, int64_t end, const float* x,
                                   int64_t pitch, int64_t channels, float* y) {
  for_each_tile<64>(
      channels, [&](auto width, int64_t c) __attribute__((always_inline)) {
        float sum[width] = {};
        for (int64_t k = begin; k < end; ++k) {
          for (int i = 0; i < width; ++i) sum[i] += p[k] * x[k * pitch + c + i];
        }
        for (int i = 0; i < width; ++i) y[c + i] = sum[i];
      });
}

class Forward final : public TimeConvKernel {
 public:
  Forward(const Signature& s, bool shared) : TimeConvKernel(s, shared, 2, 2, 2) {}

  void run(const KernelArgs& args) override {
    const TimeConvExtras extras(conv_, args.inputs, first_extra_);
    parts_.run([&](int part, int64_t begin, int64_t end) {
      float *const p = room(args, part), *const factors = p + tap_floats(),
                   *const widened = factors + tap_floats(), *const row = widened + slice_floats();
      for (int64_t unit = begin; unit < end; ++unit) {
        const int64_t n = unit / conv_.heads, head = unit % conv_.heads;
        const int64_t length = extras.length(conv_, n), channels = conv_.head_channels();
        make_taps(args, n, head, p, factors);
        if (extras.rng != nullptr) drop_taps(factors, p);
        const Slice x = slice(args.inputs[0], n, head, widened);
        for (int64_t t = 0; t < conv_.steps; ++t) {
          const int64_t first = t - conv_.left;  // where tap 0 reads
          const int64_t at = (n * conv_.steps + t) * conv_.channels + head * channels;
          float* const y = room_for(args.outputs[0], at, row);
          convolve(p + t * tap_pitch(), std::max<int64_t>(0, -first),
                   std::min(conv_.kernel, length - first), x.data + first * x.pitch, x.pitch,
                   channels, y);
          commit(y, args.outputs[0], at, channels);
        }
      }
    });
  }
};

}  // namespace

TimeConvKernel::TimeConvKernel(const Signature& s, bool shared, size_t first_extra, int64_t tensors,
                               int64_t taps)
    : conv_(s.inputs[0].shape, shared, s.attrs),
      first_extra_(first_extra),
      staged_(s.inputs[0].dtype != DType::f32),
      parts_(conv_.batch * conv_.heads, conv_.steps * conv_.head_channels() * conv_.kernel) {
  name = "own";
  room_ = tensors * slice_floats() + taps * tap_floats();
  workspace = Bytes(parts_.count() * room_ * int64_t{sizeof(float)});
}

TimeConvKernel::Slice TimeConvKernel::slice(const TensorRef& x, int64_t n, int64_t head,
                                            float* room) const {
  const int64_t channels = conv_.head_channels();
  const int64_t first = n * conv_.steps * conv_.channels + head * channels;
  if (!staged_) return {x.as<const float>() + first, conv_.channels};
  for (int64_t t = 0; t < conv_.steps; ++t)
    widen(x, first + t * conv_.channels, channels, room + t * channels);
  return {room, channels};
}

void TimeConvKernel::make_taps(const KernelArgs& args, int64_t n, int64_t head, float* p,
                               float* factors) const {
  const TimeConvExtras extras(conv_, args.inputs, first_extra_);
  for (int64_t t = 0; t < (conv_.shared ? 1 : conv_.steps); ++t) {
    const int64_t at = conv_.kernel_at(n, t, head), to = t * conv_.kernel;
    softmax_taps(as_f32(args.inputs[1], at, conv_.kernel, p + to), conv_.kernel, p + to);
    if (extras.rng == nullptr) continue;
    draw_factors(RandomStream(extras.rng, conv_.stream), at, conv_.kernel, conv_.dropout,
                 factors + to);
  }
}

void TimeConvKernel::drop_taps(const float* factors, float* p) const {
  multiply(factors, tap_floats(), p);
}

template <bool kShared>
std::unique_ptr<Kernel> make_time_conv(const Signature& s) {
  const bool fits = is_stageable(s.inputs[0].dtype) && s.outputs[0].elements() > 0;
  return fits ? std::make_unique<Forward>(s, kShared) : nullptr;
}
template std::unique_ptr<Kernel> make_time_conv<false>(const Signature& s);
template std::unique_ptr<Kernel> make_time_conv<true>(const Signature& s);

}  // namespace thimble
