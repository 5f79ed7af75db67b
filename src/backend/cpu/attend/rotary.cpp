// rotary: a position of all rows at a time, so that its angles are computed once for every head.
#include <cmath>

#include "backend/cpu/cpu_kernel.h"
#include "backend/cpu/parallel.h"
#include "ops/attend/rotary_geometry.h"

namespace thimble {
namespace {

// One row [heads * size]; y may be x.
THIMBLE_FOR_EACH_ISA void turn(const RotaryGeometry& g, const float* cosine, const float* sine,
                               const float* x, float* y) {
  const int64_t half = g.size / 2;
  for (int64_t head = 0; head < g.rotated; ++head) {
    const float* a = x + head * g.size;
    float* to = y + head * g.size;
#pragma GCC ivdep
    for (int64_t d = 0; d < half; ++d) {
      const float near = a[d], far = a[d + half];
      to[d] = near * cosine[d] - far * sine[d];
      to[d + half] = far * cosine[d] + near * sine[d];
    }
  }
  const int64_t turned = g.rotated * g.size;
  if (x != y) std::copy(x + turned, x + g.heads * g.size, y + turned);
}

class Rotary final : public Kernel {
 public:
  explicit Rotary(const Signature& s)
      : g_(rotary_geometry(s.inputs[0], s.attrs)),
        width_(g_.heads * g_.size),
        staged_(is_sixteen_bit(s.inputs[0].dtype)),
        parts_(g_.positions, g_.rows * width_ * 2) {
    name = staged_ ? "own, staged" : "own";
    workspace = Bytes(parts_.count() * room() * static_cast<int64_t>(sizeof(float)));
  }

  void run(const KernelArgs& args) override {
    const TensorRef &x = args.inputs[0], &y = args.outputs[0];
    parts_.run([&](int part, int64_t begin, int64_t end) {
      float* const cosine = reinterpret_cast<float*>(args.workspace) + part * room();
      float* const sine = cosine + g_.size / 2;
      float* const row = sine + g_.size / 2;
      for (int64_t t = begin; t < end; ++t) {
        for (int64_t d = 0; d < g_.size / 2; ++d) {
          const double angle = static_cast<double>(g_.offset + t) * g_.frequency(d);
          cosine[d] = static_cast<float>(std::cos(angle));
          sine[d] = static_cast<float>(g_.inverse ? -std::sin(angle) : std::sin(angle));
        }
        for (int64_t n = 0; n < g_.rows; ++n) {
          const int64_t at = (n * g_.positions + t) * width_;
          float* const to = room_for(y, at, row);
          turn(g_, cosine, sine, as_f32(x, at, width_, row), to);
          commit(to, y, at, width_);
        }
      }
    });
  }

 private:
  int64_t room() const { return g_.size + (staged_ ? width_ : 0); }

  const RotaryGeometry g_;
  const int64_t width_;
  const bool staged_;
  const Parts parts_;
};

}  // namespace

extern const CpuKernel cpu_rotary{"rotary", make_where<Rotary, one_stageable_type>};

}  // namespace thimble
