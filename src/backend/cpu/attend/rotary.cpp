// rotary: a position of all rows at a time, so that its angles are computed once for every head.
#include <cmath>

#include "backend/cpu/cpu_kernel.h"
#include "backend/cpu/parallel.h"
#include "ops/attend/rotary_geometry.h"

namespace thimble {
namespace {

// Cosines and sines of a position, for the near and the far half of a head.
struct Turns {
  const float *cosine, *sine, *far_cosine, *far_sine;
};

// One row [heads * size]; y may be x.
THIMBLE_FOR_EACH_ISA void turn(const RotaryGeometry& g, const Turns& turns, const float* x,
                               float* y) {
  const auto [cosine, sine, far_cosine, far_sine] = turns;
  const int64_t half = g.size / 2;
  for (int64_t head = 0; head < g.rotated; ++head) {
    const float* a = x + head * g.size;
    float* to = y + head * g.size;
#pragma GCC ivdep
    for (int64_t d = 0; d < half; ++d) {
      const float near = a[d], far = a[d + half];
      to[d] = near * cosine[d] - far * sine[d];
      to[d + half] = far * far_cosine[d] + near * far_sine[d];
    }
  }
  const int64_t turned = g.rotated * g.size;
  if (x != y) std::copy(x + turned, x + g.heads * g.size, y + turned);
}

class Rotary final : public Kernel {
 public:
  explicit Rotary(const Signature& s)
      : g_(rotary_geometry(s.inputs, s.attrs)),
        width_(g_.heads * g_.size),
        staged_(is_sixteen_bit(s.inputs[0].dtype)),
        parts_(g_.positions, g_.rows * width_ * 2) {
    name = staged_ ? "own, staged" : "own";
    workspace = Bytes(parts_.count() * room() * static_cast<int64_t>(sizeof(float)));
  }

  void run(const KernelArgs& args) override {
    const TensorRef &x = args.inputs[0], &y = args.outputs[0];
    parts_.run([&](int part, int64_t begin, int64_t end) {
      float* const turned = reinterpret_cast<float*>(args.workspace) + part * room();
      float* const row = turned + g_.size;
      const int32_t* const first = g_.continued ? args.inputs.back().as<const int32_t>() : nullptr;
      for (int64_t t = begin; t < end; ++t) {
        Turns turns = {};
        for (int64_t n = 0; n < g_.rows; ++n) {
          if (n == 0 || g_.continued) turns = turns_at(args, g_.place(first, n, t), turned);
          const int64_t at = (n * g_.positions + t) * width_;
          float* const to = room_for(y, at, row);
          turn(g_, turns, as_f32(x, at, width_, row), to);
          commit(to, y, at, width_);
        }
      }
    });
  }

 private:
  int64_t room() const { return g_.size + (staged_ ? width_ : 0); }

  // Computed into `room` [size], or where the tables have them. Turning back is the transposed map:
  // the sines of both halves change places and signs.
  Turns turns_at(const KernelArgs& args, int64_t place, float* room) const {
    const int64_t half = g_.size / 2;
    if (g_.tables) {
      const float* const cosine = args.inputs[1].as<const float>() + place * g_.size;
      const float* const sine = args.inputs[2].as<const float>() + place * g_.size;
      if (!g_.inverse) return {cosine, sine, cosine + half, sine + half};
      for (int64_t d = 0; d < g_.size; ++d) room[d] = -sine[(d + half) % g_.size];
      return {cosine, room, cosine + half, room + half};
    }
    float *const cosine = room, *const sine = room + half;
    for (int64_t d = 0; d < half; ++d) {
      const double angle = static_cast<double>(place) * g_.frequency(d);
      cosine[d] = static_cast<float>(std::cos(angle));
      sine[d] = static_cast<float>(g_.inverse ? -std::sin(angle) : std::sin(angle));
    }
    return {cosine, sine, cosine, sine};
  }

  const RotaryGeometry g_;
  const int64_t width_;
  const bool staged_;
  const Parts parts_;
};

// Tables are in f32 whatever x is in.
bool fits(const Signature& s) {
  return is_stageable(s.outputs[0].dtype) && s.outputs[0].elements() > 0;
}

}  // namespace

extern const CpuKernel cpu_rotary{"rotary", make_where<Rotary, fits>};

}  // namespace thimble
