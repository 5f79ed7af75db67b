// batch_norm_backward: one pass over x and dy for the two sums of each channel, one to write dx.
// The mask of a relu is recomputed with the operations of the forward kernel.
#include <cmath>

#include "backend/cpu/staged_rows.h"

namespace thimble {
namespace {

// Per channel [C]. A masked gradient m = (z <= 0 ? 0 : dy), z = (x - mean) * scale + beta, gives
//   dx = scale * m + slope * (x - mean) + shift
struct Channels {
  const float *mean, *beta;
  float *scale, *slope, *shift;
};

struct Sums {
  double *gradient, *times_deviation;  // [C]: of m, and of m * (x - mean)
};

template <bool kRelu, int kChannels>
THIMBLE_INLINE void add_block(const float* x, const float* dy, int64_t rows, int64_t columns,
                              const float* mean, const float* scale, const float* beta,
                              double* gradient, double* times_deviation) {
  float sum[kChannels] = {}, product[kChannels] = {}, m[kChannels], s[kChannels], b[kChannels];
  for (int c = 0; c < kChannels; ++c) m[c] = mean[c], s[c] = scale[c], b[c] = beta[c];
  for (int64_t r = 0; r < rows; ++r) {
    for (int c = 0; c < kChannels; ++c) {
      const float deviation = x[r * columns + c] - m[c];
      const float z = deviation * s[c] + b[c];
      const float d = kRelu && z <= 0 ? 0 : dy[r * columns + c];
      sum[c] += d;
      product[c] += d * deviation;
    }
  }
  for (int c = 0; c < kChannels; ++c) {
    gradient[c] += static_cast<double>(sum[c]);
    times_deviation[c] += static_cast<double>(product[c]);
  }
}

// Adds to `into`. Sums are taken in float over blocks of rows, and in double over the blocks.
template <bool kRelu>
THIMBLE_INLINE void reduce_rows(const float* x, const float* dy, int64_t rows, int64_t columns,
                                const Channels& channels, Sums into) {
  constexpr int64_t kBlock = 128;
  for (int64_t begin = 0; begin < rows; begin += kBlock) {
    const int64_t count = std::min(kBlock, rows - begin), at = begin * columns;
    for_each_tile<32>(
        columns, [&](auto width, int64_t c) __attribute__((always_inline)) {
          add_block<kRelu, width>(x + at + c, dy + at + c, count, columns, channels.mean + c,
                                  channels.scale + c, channels.beta + c, into.gradient + c,
                                  into.times_deviation + c);
        });
  }
}

THIMBLE_FOR_EACH_ISA void reduce(const float* x, const float* dy, int64_t rows, int64_t columns,
                                 const Channels& channels, Sums into) {
  reduce_rows<false>(x, dy, rows, columns, channels, into);
}

THIMBLE_FOR_EACH_ISA void reduce_relu(const float* x, const float* dy, int64_t rows,
                                      int64_t columns, const Channels& channels, Sums into) {
  reduce_rows<true>(x, dy, rows, columns, channels, into);
}

// dx may be x or dy.
template <bool kRelu, bool kAdd>
THIMBLE_INLINE void map_rows(const float* x, const float* dy, int64_t rows, int64_t columns,
                             const float* __restrict mean, const float* __restrict scale,
                             const float* __restrict beta, const float* __restrict slope,
                             const float* __restrict shift, float* dx) {
  for (int64_t r = 0; r < rows; ++r, x += columns, dy += columns, dx += columns) {
#pragma GCC ivdep
    for (int64_t c = 0; c < columns; ++c) {
      const float deviation = x[c] - mean[c];
      const float z = deviation * scale[c] + beta[c];
      const float d = kRelu && z <= 0 ? 0 : dy[c];
      const float value = scale[c] * d + (slope[c] * deviation + shift[c]);
      dx[c] = kAdd ? dx[c] + value : value;
    }
  }
}

THIMBLE_FOR_EACH_ISA void map(const float* x, const float* dy, int64_t rows, int64_t columns,
                              const Channels& k, bool relu, bool add, float* dx) {
  if (relu && add) {
    map_rows<true, true>(x, dy, rows, columns, k.mean, k.scale, k.beta, k.slope, k.shift, dx);
  } else if (relu) {
    map_rows<true, false>(x, dy, rows, columns, k.mean, k.scale, k.beta, k.slope, k.shift, dx);
  } else if (add) {
    map_rows<false, true>(x, dy, rows, columns, k.mean, k.scale, k.beta, k.slope, k.shift, dx);
  } else {
    map_rows<false, false>(x, dy, rows, columns, k.mean, k.scale, k.beta, k.slope, k.shift, dx);
  }
}

class BatchNormBackward final : public Kernel {
 public:
  explicit BatchNormBackward(const Signature& s)
      : columns_(s.inputs[0].shape.back()),
        rows_(s.inputs[0].elements() / columns_),
        relu_(s.attrs.text("act", "none") == "relu"),
        training_(s.attrs.integer("training", 1) != 0),
        epsilon_(static_cast<float>(s.attrs.real("epsilon", 1e-5))),
        rows_at_once_(staged_rows(s.inputs[0])),
        parts_(rows_, columns_) {
    name = "own";
    const auto doubles = static_cast<int64_t>(sizeof(double));
    const auto floats = static_cast<int64_t>(sizeof(float));
    workspace = Bytes((parts_.count() * (2 * doubles + 3 * rows_at_once_ * floats) + 3 * floats) *
                      columns_);
  }

  void run(const KernelArgs& args) override {
    const float* var = args.inputs[2].as<const float>();
    const float* gamma = args.inputs[3].as<const float>();
    auto* partial = reinterpret_cast<double*>(args.workspace);
    auto* floats = reinterpret_cast<float*>(partial + parts_.count() * 2 * columns_);
    const Channels channels = {args.inputs[1].as<const float>(), args.inputs[4].as<const float>(),
                               floats, floats + columns_, floats + 2 * columns_};
    const auto sums = [&](int part) {
      double* first = partial + part * 2 * columns_;
      return Sums{first, first + columns_};
    };
    for (int64_t c = 0; c < columns_; ++c) {
      channels.scale[c] = gamma[c] / std::sqrt(var[c] + epsilon_);
    }
    float* rooms = floats + 3 * columns_;
    parts_.run([&](int part, int64_t begin, int64_t end) {
      std::fill_n(sums(part).gradient, 2 * columns_, 0.0);
      for_each_slice(args, part, begin, end, rooms, [&](const Slice& s) {
        (relu_ ? reduce_relu : reduce)(s.x, s.dy, s.rows, columns_, channels, sums(part));
      });
    });
    const Sums all = sums(0);
    for (int part = 1; part < parts_.count(); ++part) {
      for (int64_t c = 0; c < columns_; ++c) {
        all.gradient[c] += sums(part).gradient[c];
        all.times_deviation[c] += sums(part).times_deviation[c];
      }
    }
    const double share = training_ ? 1 / static_cast<double>(rows_) : 0;
    for (int64_t c = 0; c < columns_; ++c) {
      const float rstd = 1 / std::sqrt(var[c] + epsilon_);
      const double dgamma = all.times_deviation[c] * static_cast<double>(rstd);
      channels.slope[c] = -channels.scale[c] * rstd * static_cast<float>(dgamma * share);
      channels.shift[c] = -channels.scale[c] * static_cast<float>(all.gradient[c] * share);
      write(args, 1, c, static_cast<float>(dgamma));
      write(args, 2, c, static_cast<float>(all.gradient[c]));
    }
    parts_.run([&](int part, int64_t begin, int64_t end) {
      for_each_slice(args, part, begin, end, rooms, [&](const Slice& s) {
        const TensorRef& to = args.outputs[0];
        const bool add = args.adds_into(0);
        float* dx = room_for(to, s.at, s.room);
        if (add) as_f32(to, s.at, s.rows * columns_, s.room);
        map(s.x, s.dy, s.rows, columns_, channels, relu_, add, dx);
        commit(dx, to, s.at, s.rows * columns_);
      });
    });
  }

 private:
  struct Slice {
    const float *x, *dy;
    float* room;  // for dx
    int64_t at, rows;
  };

  // Calls body(slice) for rows [begin, end): all of them at once in f32, else a few.
  template <class Body>
  void for_each_slice(const KernelArgs& args, int part, int64_t begin, int64_t end, float* rooms,
                      const Body& body) const {
    const int64_t size = rows_at_once_ * columns_;
    float* room = rooms + part * 3 * size;
    const int64_t step = rows_at_once_ > 0 ? rows_at_once_ : std::max<int64_t>(end - begin, 1);
    for (int64_t row = begin; row < end; row += step) {
      const int64_t rows = std::min(step, end - row), at = row * columns_;
      body(Slice{as_f32(args.inputs[0], at, rows * columns_, room),
                 as_f32(args.inputs[5], at, rows * columns_, room + size), room + 2 * size, at,
                 rows});
    }
  }

  static void write(const KernelArgs& args, size_t output, int64_t at, float value) {
    float* to = args.outputs[output].as<float>() + at;
    *to = args.adds_into(output) ? *to + value : value;
  }

  const int64_t columns_, rows_;
  const bool relu_, training_;
  const float epsilon_;
  const int64_t rows_at_once_;
  const Parts parts_;
};

}  // namespace

extern const CpuKernel cpu_batch_norm_backward{"batch_norm_backward",
                                               make_where<BatchNormBackward, normalisable>};

}  // namespace thimble
