// Gradients of normalisations that go by rows: (x, statistics, gamma, dy) -> (dx, dgamma, ...), the
// gradients of scales and shifts summed along the way. 16-bit rows are widened some at a time.
#pragma once

#include "backend/cpu/normalise/channel_sums.h"
#include "backend/cpu/staged_rows.h"

namespace thimble {

// Some rows of one call, from row `first` of the statistics on. dx may be dy.
struct RowGradients {
  const float *x, *dy;
  float* dx;
  int64_t first, rows, columns;
  double *dgamma, *dbeta;  // [columns], to be added to
};
using RowGradientLoop = void (*)(const KernelArgs& args, const RowGradients& rows);

class RowGradientKernel final : public Kernel {
 public:
  // x is the first input, dy the last, dx the first output; the others are `sums` sums.
  RowGradientKernel(const Signature& s, RowGradientLoop loop, size_t sums)
      : loop_(loop),
        sums_wanted_(sums),
        columns_(s.inputs[0].shape.back()),
        staged_(staged_rows(s.inputs[0])),
        parts_(s.inputs[0].elements() / columns_, columns_ * 4),
        sums_(parts_.count(), columns_) {
    name = staged_ > 0 ? "own, staged" : "own";
    workspace = sums_.bytes() +
                Bytes(parts_.count() * room_of_part() * static_cast<int64_t>(sizeof(float)));
  }

  void run(const KernelArgs& args) override {
    const TensorRef &x = args.inputs[0], &dy = args.inputs.back(), &dx = args.outputs[0];
    auto* rooms = reinterpret_cast<float*>(args.workspace + sums_.bytes().count);
    parts_.run([&](int part, int64_t begin, int64_t end) {
      sums_.clear(args.workspace, part);
      float* const room = rooms + part * room_of_part();
      const int64_t step = staged_ > 0 ? staged_ : end - begin;
      for (int64_t row = begin; row < end; row += step) {
        const int64_t rows = std::min(step, end - row), at = row * columns_;
        const int64_t count = rows * columns_;
        float* const to = room_for(dx, at, room + 2 * staged_ * columns_);
        if (staged_ > 0 && args.adds_into(0)) widen(dx, at, count, to);
        loop_(args, {as_f32(x, at, count, room), as_f32(dy, at, count, room + staged_ * columns_),
                     to, row, rows, columns_, sums_.first(args.workspace, part),
                     sums_.second(args.workspace, part)});
        commit(to, dx, at, count);
      }
    });
    sums_.write(args.workspace, args, 1, sums_wanted_);
  }

 private:
  int64_t room_of_part() const { return 3 * staged_ * columns_; }

  const RowGradientLoop loop_;
  const size_t sums_wanted_;
  const int64_t columns_, staged_;
  const Parts parts_;
  const ChannelSums sums_;
};

// As CpuKernel::make.
template <RowGradientLoop kLoop, size_t kSums>
std::unique_ptr<Kernel> row_gradients(const Signature& s) {
  return normalisable(s) ? std::make_unique<RowGradientKernel>(s, kLoop, kSums) : nullptr;
}

}  // namespace thimble
