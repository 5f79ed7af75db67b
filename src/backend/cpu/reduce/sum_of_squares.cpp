// sum_of_squares: in double, over parts that depend on nothing but the size and the team.
#include "backend/cpu/cpu_kernel.h"
#include "backend/cpu/parallel.h"
#include "backend/cpu/sixteen_bit.h"

namespace thimble {
namespace {

constexpr int64_t kPiece = 1024;

THIMBLE_FOR_EACH_ISA double sum_of(const float* x, int64_t count) {
  double lane[8] = {};
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    for (int l = 0; l < 8; ++l) {
      lane[l] += static_cast<double>(x[i + l]) * static_cast<double>(x[i + l]);
    }
  }
  double sum = 0;
  for (; i < count; ++i) sum += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  for (int l = 0; l < 8; ++l) sum += lane[l];
  return sum;
}

class SumOfSquares final : public Kernel {
 public:
  explicit SumOfSquares(const Signature& s) : parts_(s.inputs[0].elements(), 4) {
    name = "own";
    workspace = Bytes(parts_.count() * static_cast<int64_t>(sizeof(double)));
  }

  void run(const KernelArgs& args) override {
    auto* const sums = reinterpret_cast<double*>(args.workspace);
    parts_.run([&](int part, int64_t begin, int64_t end) {
      double sum = 0;
      for (int64_t i = begin; i < end; i += kPiece) {
        float room[kPiece];
        const int64_t count = std::min(kPiece, end - i);
        sum += sum_of(as_f32(args.inputs[0], i, count, room), count);
      }
      sums[part] = sum;
    });
    double all = 0;
    for (int part = 0; part < parts_.count(); ++part) all += sums[part];
    float* const to = args.outputs[0].as<float>();
    *to = (args.adds_into(0) ? *to : 0) + static_cast<float>(all);
  }

 private:
  const Parts parts_;
};

}  // namespace

extern const CpuKernel cpu_sum_of_squares{"sum_of_squares",
                                          make_where<SumOfSquares, stageable_input>};

}  // namespace thimble
