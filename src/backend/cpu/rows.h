// Kernels that work on one row [columns] at a time, or on a few: a loop over a range of rows, on
// every thread one.
#pragma once

#include "backend/cpu/cpu_kernel.h"
#include "backend/cpu/parallel.h"

namespace thimble {

using RowLoop = void (*)(const KernelArgs& args, int64_t begin, int64_t end);

class RowKernel final : public Kernel {
 public:
  RowKernel(int64_t rows, int64_t cost, RowLoop loop) : loop_(loop), parts_(rows, cost) {
    name = "own";
  }
  void run(const KernelArgs& args) override {
    parts_.run([&](int, int64_t begin, int64_t end) { loop_(args, begin, end); });
  }

 private:
  const RowLoop loop_;
  const Parts parts_;
};

// Rows are all axes but the last of `x`.
inline std::unique_ptr<Kernel> make_rows(const Shape& x, RowLoop loop, int64_t cost_per_element) {
  const int64_t columns = x.back();
  return std::make_unique<RowKernel>(x.elements() / columns, columns * cost_per_element, loop);
}

}  // namespace thimble
