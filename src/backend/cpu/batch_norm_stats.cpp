// batch_norm_stats: x is read once. A block of rows that fits the first cache gets its mean and its
// sum of squared deviations in two sweeps; blocks are then merged in double (Chan, Golub and
// LeVeque 1979), so a mean far from zero costs no digits of the variance.
#include "backend/cpu/cpu_kernel.h"
#include "backend/cpu/parallel.h"

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

THIMBLE_FOR_EACH_ISA void add_rows(const float* x, int64_t rows, int64_t columns, Moments into) {
  const int64_t block = std::max<int64_t>(4096 / columns, 8);
  for (int64_t c = 0; c < columns; ++c) into.mean[c] = into.squares[c] = 0;
  for (int64_t begin = 0; begin < rows; begin += block) {
    const int64_t count = std::min(block, rows - begin);
    const float* from = x + begin * columns;
    const auto before = static_cast<double>(begin);
    for_each_tile<64>(
        columns, [&](auto width, int64_t c) __attribute__((always_inline)) {
          merge_block<width>(from + c, count, columns, before, into.mean + c, into.squares + c);
        });
  }
}

class BatchNormStats final : public Kernel {
 public:
  explicit BatchNormStats(const Shape& x)
      : columns_(x.back()), rows_(x.elements() / columns_), parts_(rows_, columns_) {
    name = "own";
    workspace = Bytes(parts_.count() * 2 * columns_ * static_cast<int64_t>(sizeof(double)));
  }

  void run(const KernelArgs& args) override {
    const float* x = args.inputs[0].as<const float>();
    auto* partial = reinterpret_cast<double*>(args.workspace);
    const auto moments = [&](int part) {
      double* mean = partial + part * 2 * columns_;
      return Moments{mean, mean + columns_};
    };
    parts_.run([&](int part, int64_t begin, int64_t end) {
      add_rows(x + begin * columns_, end - begin, columns_, moments(part));
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
  const int64_t columns_, rows_;
  const Parts parts_;
};

std::unique_ptr<Kernel> make(const Signature& s) {
  return all_f32(s) ? std::make_unique<BatchNormStats>(s.inputs[0].shape) : nullptr;
}

}  // namespace

extern const CpuKernel cpu_batch_norm_stats;
const CpuKernel cpu_batch_norm_stats{"batch_norm_stats", make};

}  // namespace thimble
