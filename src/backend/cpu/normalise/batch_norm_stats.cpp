// batch_norm_stats: x is read once. A block of rows that fits the L1 cache gets its mean and its
// sum of squared deviations in two sweeps. Blocks are then merged in double (Chan, Golub and
// LeVeque 1979), so a mean far from zero costs no digits of the variance.
#include "backend/cpu/staged_rows.h"

namespace thimble {
namespace {

// Moments of some rows, per channel.
struct Moments {
  double* mean;     // [C]
  double* squares;  // [C]: of deviations from the mean
};

template <int kChannels>
THIMBLE_INLINE void merge_block(const float* x, int64_t rows, int64_t columns, double before,
                                double* mean, double* squares) {
  float sum[kChannels] = {}, center[kChannels], square[kChannels] = {};
  for (int64_t r = 0; r < rows; ++r) {
    for (int c = 0; c < kChannels; ++c) sum[c] += x[r * columns + c];
  }
  const float share = 1.0f / static_cast<float>(rows);
  for (int c = 0; c < kChannels; ++c) center[c] = sum[c] * share;
  for (int64_t r = 0; r < rows; ++r) {
    for (int c = 0; c < kChannels; ++c) {
      const float deviation = x[r * columns + c] - center[c];
      square[c] += deviation * deviation;
    }
  }
  const double count = static_cast<double>(rows), weight = count / (before + count);
  for (int c = 0; c < kChannels; ++c) {
    const double apart = static_cast<double>(center[c]) - mean[c];
    mean[c] += apart * weight;
    squares[c] += static_cast<double>(square[c]) + apart * apart * before * weight;
  }
}

// Merges a block of rows into the moments of the `before` rows above it.
THIMBLE_FOR_EACH_ISA void add_block(const float* x, int64_t rows, int64_t columns, double before,
                                    Moments into) {
  for_each_tile<64>(
      columns, [&](auto width, int64_t c) __attribute__((always_inline)) {
        merge_block<width>(x + c, rows, columns, before, into.mean + c, into.squares + c);
      });
}

class BatchNormStats final : public Kernel {
 public:
  explicit BatchNormStats(const TensorType& x)
      : columns_(x.shape.back()),
        rows_(x.elements() / columns_),
        block_(std::max<int64_t>(4096 / columns_, 8)),
        staged_(x.dtype != DType::f32),
        parts_(rows_, columns_) {
    name = "own";
    const auto doubles = static_cast<int64_t>(sizeof(double));
    const auto floats = static_cast<int64_t>(sizeof(float));
    workspace = Bytes(parts_.count() * (2 * doubles + (staged_ ? block_ * floats : 0)) * columns_);
  }

  void run(const KernelArgs& args) override {
    auto* partial = reinterpret_cast<double*>(args.workspace);
    const auto moments = [&](int part) {
      double* mean = partial + part * 2 * columns_;
      return Moments{mean, mean + columns_};
    };
    auto* rooms = reinterpret_cast<float*>(partial + parts_.count() * 2 * columns_);
    parts_.run([&](int part, int64_t begin, int64_t end) {
      const Moments into = moments(part);
      std::fill_n(into.mean, 2 * columns_, 0.0);
      for (int64_t row = begin; row < end; row += block_) {
        const int64_t rows = std::min(block_, end - row);
        const float* x = as_f32(args.inputs[0], row * columns_, rows * columns_,
                                rooms + part * block_ * columns_);
        add_block(x, rows, columns_, static_cast<double>(row - begin), into);
      }
    });
    const Moments all = moments(0);
    for (int part = 1; part < parts_.count(); ++part) {
      const Moments next = moments(part);
      const auto before = static_cast<double>(parts_.begin(part));
      const auto after = static_cast<double>(parts_.begin(part + 1));
      const double weight = (after - before) / after;
      for (int64_t c = 0; c < columns_; ++c) {
        const double apart = next.mean[c] - all.mean[c];
        all.mean[c] += apart * weight;
        all.squares[c] += next.squares[c] + apart * apart * before * weight;
      }
    }
    for (int64_t c = 0; c < columns_; ++c) {
      args.outputs[0].as<float>()[c] = static_cast<float>(all.mean[c]);
      args.outputs[1].as<float>()[c] =
          static_cast<float>(all.squares[c] / static_cast<double>(rows_));
    }
  }

 private:
  const int64_t columns_, rows_, block_;
  const bool staged_;
  const Parts parts_;
};

std::unique_ptr<Kernel> make(const Signature& s) {
  return normalisable(s) ? std::make_unique<BatchNormStats>(s.inputs[0]) : nullptr;
}

}  // namespace

extern const CpuKernel cpu_batch_norm_stats{"batch_norm_stats", make};

}  // namespace thimble
