// sinusoid: the row of a position is made once and copied to all tokens that stand there.
#include "ops/embed/sinusoid.h"

#include <cstring>

#include "backend/cpu/cpu_kernel.h"
#include "backend/cpu/parallel.h"

namespace thimble {
namespace {

class SinusoidKernel final : public Kernel {
 public:
  explicit SinusoidKernel(const Signature& s)
      : sinusoid_(s.attrs),
        batch_(s.inputs[0].shape[0]),
        steps_(s.inputs[0].shape[1]),
        parts_(steps_, sinusoid_.width * 50) {
    name = "own";
    workspace = Bytes(parts_.count() * sinusoid_.width * int64_t{sizeof(float)});
  }

  void run(const KernelArgs& args) override {
    const int64_t width = sinusoid_.width;
    const int64_t bytes = width * size_of(args.outputs[0].type.dtype);
    auto* const y = args.outputs[0].as<std::byte>();
    parts_.run([&](int part, int64_t begin, int64_t end) {
      float* const row = reinterpret_cast<float*>(args.workspace) + part * width;
      for (int64_t t = begin; t < end; ++t) {
        for (int64_t c = 0; c < width; ++c) row[c] = static_cast<float>(sinusoid_.at(t, c));
        for (int64_t n = 0; n < batch_; ++n) {
          const int64_t at = n * steps_ + t;
          if (args.inputs[0].as<const int32_t>()[at] == sinusoid_.pad) {
            std::memset(y + at * bytes, 0, static_cast<size_t>(bytes));
          } else if (args.outputs[0].type.dtype == DType::f32) {
            std::memcpy(y + at * bytes, row, static_cast<size_t>(bytes));
          } else {
            narrow(row, args.outputs[0], at * width, width);
          }
        }
      }
    });
  }

 private:
  const Sinusoid sinusoid_;
  const int64_t batch_, steps_;
  const Parts parts_;
};

}  // namespace

extern const CpuKernel cpu_sinusoid{"sinusoid", make_where<SinusoidKernel, stageable_output>};

}  // namespace thimble
