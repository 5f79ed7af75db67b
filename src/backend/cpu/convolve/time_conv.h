// dynamic_conv, light_conv and their gradients on the CPU: a row of the batch and a head at a time.
// The softmaxed kernels of that head are made first, and wait in the thread's room; then channels
// go through in registers, tap after tap. 16-bit tensors are widened for one row and head.
#pragma once

#include "backend/cpu/cpu_kernel.h"
#include "backend/cpu/parallel.h"
#include "ops/convolve/time_conv_geometry.h"

namespace thimble {

class TimeConvKernel : public Kernel {
 protected:
  // `tensors`: how many like x a thread widens; `taps`: rooms of the size of a head's kernels.
  TimeConvKernel(const Signature& s, bool shared, size_t first_extra, int64_t tensors,
                 int64_t taps);

  // One row and head, as f32: rows of `pitch` floats.
  struct Slice {
    const float* data;
    int64_t pitch;
  };
  Slice slice(const TensorRef& x, int64_t n, int64_t head, float* room) const;
  // Softmaxes the kernels of a row and head into p; into `factors` what DropConnect multiplies taps
  // by, where it does.
  void make_taps(const KernelArgs& args, int64_t n, int64_t head, float* p, float* factors) const;
  // Multiplies them by those.
  void drop_taps(const float* factors, float* p) const;

  float* room(const KernelArgs& args, int part) const {
    return reinterpret_cast<float*>(args.workspace) + shared_room_ + part * room_;
  }
  int64_t slice_floats() const { return staged_ ? conv_.steps * conv_.head_channels() : 0; }
  int64_t tap_floats() const { return (conv_.shared ? 1 : conv_.steps) * conv_.kernel; }
  // From the kernel of one position to that of the next.
  int64_t tap_pitch() const { return conv_.shared ? 0 : conv_.kernel; }

  const TimeConv conv_;
  const size_t first_extra_;  // the input behind x, w and dy
  const bool staged_;
  const Parts parts_;        // rows times heads
  int64_t shared_room_ = 0;  // floats, in front of the threads' rooms
  int64_t room_ = 0;         // floats of a thread
};

template <bool kShared>
std::unique_ptr<Kernel> make_time_conv(const Signature& s);
template <bool kShared>
std::unique_ptr<Kernel> make_time_conv_backward(const Signature& s);

}  // namespace thimble
