// upsample2d: a line of pixels is spread once, and copied to the lines below it.
#include <cstring>

#include "backend/cpu/cpu_kernel.h"
#include "backend/cpu/parallel.h"

namespace thimble {
namespace {

class Upsample final : public Kernel {
 public:
  explicit Upsample(const Signature& s)
      : factor_(s.attrs.integer("factor")),
        width_(s.inputs[0].shape[2]),
        pixel_(s.inputs[0].shape[3] * size_of(s.inputs[0].dtype)),
        lines_(s.inputs[0].shape[0] * s.inputs[0].shape[1], factor_ * factor_ * width_ * pixel_) {
    name = "own";
  }

  void run(const KernelArgs& args) override {
    lines_.run([&](int, int64_t begin, int64_t end) {
      for (int64_t line = begin; line < end; ++line) {
        spread(args.inputs[0].as<const std::byte>() + line * width_ * pixel_,
               args.outputs[0].as<std::byte>() + line * factor_ * factor_ * width_ * pixel_);
      }
    });
  }

 private:
  void spread(const std::byte* from, std::byte* to) const {
    const auto pixel = static_cast<size_t>(pixel_);
    std::byte* const first = to;
    for (int64_t w = 0; w < width_; ++w, from += pixel_) {
      for (int64_t i = 0; i < factor_; ++i, to += pixel_) std::memcpy(to, from, pixel);
    }
    const int64_t line = factor_ * width_ * pixel_;
    for (int64_t i = 1; i < factor_; ++i, to += line) {
      std::memcpy(to, first, static_cast<size_t>(line));
    }
  }

  const int64_t factor_, width_, pixel_;  // pixel_: bytes
  const Parts lines_;                     // of x
};

std::unique_ptr<Kernel> make(const Signature& s) {
  return s.accumulate == 0 && s.outputs[0].elements() > 0 ? std::make_unique<Upsample>(s) : nullptr;
}

}  // namespace

extern const CpuKernel cpu_upsample2d{"upsample2d", make};

}  // namespace thimble
