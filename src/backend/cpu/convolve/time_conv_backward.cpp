// The gradients of dynamic_conv and light_conv. Where all positions share their kernels, each row of
// the batch leaves the gradients of its taps behind, which are added up in order.
//
//   scratch  | light_conv: gradients of taps f32 [N,H,K] | rooms of the threads
#include "backend/cpu/convolve/time_conv.h"

namespace thimble {
namespace {

// d[k] += factor[k] * (a . b[k * pitch]) over the channels, for taps k in [begin, end).
THIMBLE_FOR_EACH_ISA void tap_gradients(const float* a, const float* b, int64_t pitch,
                                        int64_t channels, const float* factors, int64_t begin,
                                        int64_t end, float* d) {
  for (int64_t k = begin; k < end; ++k) {
    float lane[16] = {};
    const float* const row = b + k * pitch;
    int64_t c = 0;
    for (; c + 16 <= channels; c += 16) {
      for (int l = 0; l < 16; ++l) lane[l] += a[c + l] * row[c + l];
    }
    float sum = 0;
    for (int l = 0; l < 16; ++l) sum += lane[l];
    for (; c < channels; ++c) sum += a[c] * row[c];
    d[k] += factors == nullptr ? sum : factors[k] * sum;
  }
}

// The gradient of a softmax with results p, in place of d.
THIMBLE_FOR_EACH_ISA void softmax_gradient(const float* p, int64_t count, float* d) {
  float mean = 0;
  for (int64_t k = 0; k < count; ++k) mean += p[k] * d[k];
  for (int64_t k = 0; k < count; ++k) d[k] = p[k] * (d[k] - mean);
}

// y[c] = sum over taps k in [begin, end) of p[-k * apart] * dy[-k * pitch + c], or added.
THIMBLE_FOR_EACH_ISA void scatter(const float* p, int64_t apart, int64_t begin, int64_t end,
                                  const float* dy, int64_t pitch, int64_t channels, bool add,
                                  float* y) {
  for_each_tile<64>(
      channels, [&](auto width, int64_t c) __attribute__((always_inline)) {
        float sum[width] = {};
        for (int64_t k = begin; k < end; ++k) {
          const float tap = p[-k * apart];
          for (int i = 0; i < width; ++i) sum[i] += tap * dy[-k * pitch + c + i];
        }
        for (int i = 0; i < width; ++i) y[c + i] = (add ? y[c + i] : 0) + sum[i];
      });
}

THIMBLE_FOR_EACH_ISA void store_taps(const float* d, int64_t count, bool add, float* to) {
  for (int64_t k = 0; k < count; ++k) to[k] = (add ? to[k] : 0) + d[k];
}

class Backward final : public TimeConvKernel {
 public:
  Backward(const Signature& s, bool shared) : TimeConvKernel(s, shared, 3, 3, 3) {
    if (conv_.shared) shared_room_ = (conv_.batch * conv_.heads * conv_.kernel + 15) / 16 * 16;
    room_ += conv_.kernel;
    workspace = Bytes((shared_room_ + parts_.count() * room_) * int64_t{sizeof(float)});
  }

  void run(const KernelArgs& args) override {
    parts_.run([&](int part, int64_t begin, int64_t end) {
      const Room room(*this, this->room(args, part));
      for (int64_t unit = begin; unit < end; ++unit) {
        run_unit(args, room, unit / conv_.heads, unit % conv_.heads);
      }
    });
    if (conv_.shared) add_up(args);
  }

 private:
  struct Room {
    float *p, *factors, *d, *taps, *x, *dy, *row;

    Room(const Backward& b, float* at)
        : p(at),
          factors(p + b.tap_floats()),
          d(factors + b.tap_floats()),
          taps(d + b.tap_floats()),
          x(taps + b.conv_.kernel),
          dy(x + b.slice_floats()),
          row(dy + b.slice_floats()) {}
  };

  void run_unit(const KernelArgs& args, const Room& room, int64_t n, int64_t head) const {
    const TimeConvExtras extras(conv_, args.inputs, first_extra_);
    const Slice x = slice(args.inputs[0], n, head, room.x);
    const Slice dy = slice(args.inputs[2], n, head, room.dy);
    make_taps(args, n, head, room.p, room.factors);
    std::fill_n(room.d, tap_floats(), 0.0f);
    for (int64_t t = 0; t < conv_.steps; ++t) {
      const int64_t first = t - conv_.left;  // where tap 0 reads
      tap_gradients(
          dy.data + t * dy.pitch, x.data + first * x.pitch, x.pitch, conv_.head_channels(),
          extras.rng == nullptr ? nullptr : room.factors + t * tap_pitch(),
          std::max<int64_t>(0, -first), std::min(conv_.kernel, extras.length(conv_, n) - first),
          room.d + t * tap_pitch());
    }
    if (conv_.shared) {
      std::copy_n(room.d, conv_.kernel, left_behind(args, n, head));
    } else {
      for (int64_t t = 0; t < conv_.steps; ++t) {
        store_kernel(args, conv_.kernel_at(n, t, head), room.p + t * conv_.kernel,
                     room.d + t * conv_.kernel, room.taps);
      }
    }
    if (extras.rng != nullptr) drop_taps(room.factors, room.p);
    to_data(args, room, dy, n, head, extras.length(conv_, n));
  }

  // dx of a row and head.
  void to_data(const KernelArgs& args, const Room& room, const Slice& dy, int64_t n, int64_t head,
               int64_t length) const {
    const int64_t channels = conv_.head_channels();
    const bool add = args.adds_into(0);
    for (int64_t s = 0; s < conv_.steps; ++s) {
      // Position last - k reads s through tap k.
      const int64_t last = s + conv_.left;
      const int64_t begin = std::max<int64_t>(0, last - (conv_.steps - 1));
      const int64_t end = s < length ? std::min(conv_.kernel, last + 1) : begin;
      const int64_t at = (n * conv_.steps + s) * conv_.channels + head * channels;
      float* const to = room_for(args.outputs[0], at, room.row);
      if (add && staged_) widen(args.outputs[0], at, channels, to);
      scatter(room.p + last * tap_pitch(), tap_pitch() - 1, begin, end, dy.data + last * dy.pitch,
              dy.pitch, channels, add, to);
      commit(to, args.outputs[0], at, channels);
    }
  }

  // The gradient of one kernel before its softmax, from tap `at` of w on.
  void store_kernel(const KernelArgs& args, int64_t at, const float* p, float* d,
                    float* room) const {
    softmax_gradient(p, conv_.kernel, d);
    float* const to = room_for(args.outputs[1], at, room);
    if (args.adds_into(1) && staged_) widen(args.outputs[1], at, conv_.kernel, to);
    store_taps(d, conv_.kernel, args.adds_into(1), to);
    commit(to, args.outputs[1], at, conv_.kernel);
  }

  float* left_behind(const KernelArgs& args, int64_t n, int64_t head) const {
    return reinterpret_cast<float*>(args.workspace) + (n * conv_.heads + head) * conv_.kernel;
  }
  void add_up(const KernelArgs& args) const {
    const Room room(*this, this->room(args, 0));
    for (int64_t head = 0; head < conv_.heads; ++head) {
      std::fill_n(room.d, conv_.kernel, 0.0f);
      for (int64_t n = 0; n < conv_.batch; ++n) {
        store_taps(left_behind(args, n, head), conv_.kernel, true, room.d);
      }
      make_taps(args, 0, head, room.p, room.factors);
      store_kernel(args, conv_.kernel_at(0, 0, head), room.p, room.d, room.taps);
    }
  }
};

}  // namespace

template <bool kShared>
std::unique_ptr<Kernel> make_time_conv_backward(const Signature& s) {
  const bool fits = is_stageable(s.inputs[0].dtype) && s.outputs[0].elements() > 0;
  return fits ? std::make_unique<Backward>(s, kShared) : nullptr;
}
template std::unique_ptr<Kernel> make_time_conv_backward<false>(const Signature& s);
template std::unique_ptr<Kernel> make_time_conv_backward<true>(const Signature& s);

}  // namespace thimble
