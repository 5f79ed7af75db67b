// Runs a loop written for f32 on 16-bit tensors, a slice at a time: what it reads is widened into
// the workspace, what it wrote is narrowed into place. A slice is a few thousand elements of each
// thread, however large the tensors are.
#pragma once

#include <array>

#include "backend/cpu/cpu_kernel.h"
#include "backend/cpu/parallel.h"

namespace thimble {

// Units [begin, end) of a kernel's work: elements, rows, images.
using UnitLoop = void (*)(const KernelArgs& args, int64_t begin, int64_t end);

// Runs such a loop as it is, a range on every thread.
class UnitKernel final : public Kernel {
 public:
  // cost: operations or bytes of a unit, roughly.
  UnitKernel(int64_t units, int64_t cost, UnitLoop loop) : loop_(loop), parts_(units, cost) {
    name = "own";
  }
  void run(const KernelArgs& args) override {
    parts_.run([&](int, int64_t begin, int64_t end) { loop_(args, begin, end); });
  }

 private:
  const UnitLoop loop_;
  const Parts parts_;
};

// Brings `count` results of one output from `room` to where they belong, from element `first` on,
// in place of rounding them to nearest. Outputs come in order.
using Finish = void (*)(const KernelArgs& args, size_t output, const float* room, int64_t first,
                        int64_t count);

// f32 and 16-bit floats (other dtypes are passed on as they are), at least one of the latter, and
// something to do.
bool can_stage(const Signature& signature);

class StagedLoop final : public Kernel {
 public:
  // cost: operations or bytes of a unit, roughly. Tensors are walked along with the units, unit u
  // being elements [u * k, (u + 1) * k), k = elements / units; bit i of `whole`: input i is not,
  // and the loop sees all of it.
  StagedLoop(const Signature& s, UnitLoop loop, int64_t units, int64_t cost, uint32_t whole = 0,
             Finish finish = nullptr);

  void run(const KernelArgs& args) override;

 private:
  static constexpr size_t kMostTensors = 12;
  struct Stage {
    int64_t per_unit = 0;  // elements; 0: used where it is, or staged whole
    int64_t room = 0;  // offset in floats, from the thread's room (or the workspace, when whole)
    bool whole = false;
  };

  void run_slice(const KernelArgs& args, float* room, int64_t begin, int64_t end);

  const UnitLoop loop_;
  const Finish finish_;
  const Parts parts_;
  std::array<Stage, kMostTensors> stages_ = {};  // inputs, then outputs
  int64_t slice_ = 1;                            // units
  int64_t shared_ = 0, per_thread_ = 0;          // floats
};

}  // namespace thimble
