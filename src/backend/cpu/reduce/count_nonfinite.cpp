// count_nonfinite: a number is not finite when its exponent is all ones.
#include "backend/cpu/cpu_kernel.h"
#include "backend/cpu/parallel.h"

namespace thimble {
namespace {

constexpr int kMostParts = 256;

template <class Bits>
THIMBLE_INLINE int64_t count_range(const void* data, int64_t begin, int64_t end, Bits exponent) {
  const Bits* x = static_cast<const Bits*>(data);
  int64_t count = 0;
  for (int64_t i = begin; i < end; ++i) count += (x[i] & exponent) == exponent ? 1 : 0;
  return count;
}

THIMBLE_FOR_EACH_ISA int64_t count(const TensorRef& x, int64_t begin, int64_t end) {
  if (x.type.dtype == DType::f32) return count_range<uint32_t>(x.data, begin, end, 0x7f800000u);
  const uint16_t exponent = x.type.dtype == DType::f16 ? 0x7c00u : 0x7f80u;
  return count_range<uint16_t>(x.data, begin, end, exponent);
}

class CountNonfinite final : public Kernel {
 public:
  explicit CountNonfinite(const Signature& s) {
    name = "own";
    for (const TensorType& input : s.inputs) parts_.emplace_back(input.elements(), 1);
  }
  void run(const KernelArgs& args) override {
    int64_t sum = 0;
    for (size_t i = 0; i < parts_.size(); ++i) {
      int64_t counts[kMostParts] = {};
      parts_[i].run([&](int part, int64_t begin, int64_t end) {
        counts[part] = count(args.inputs[i], begin, end);
      });
      for (const int64_t part : counts) sum += part;
    }
    float* to = args.outputs[0].as<float>();
    *to = (args.adds_into(0) ? *to : 0) + static_cast<float>(sum);
  }

 private:
  std::vector<Parts> parts_;  // by input
};

std::unique_ptr<Kernel> make(const Signature& s) {
  const bool fits = std::ranges::all_of(s.inputs, [](const TensorType& input) {
    return is_stageable(input.dtype) && Parts(input.elements(), 1).count() <= kMostParts;
  });
  return fits ? std::make_unique<CountNonfinite>(s) : nullptr;
}

}  // namespace

extern const CpuKernel cpu_count_nonfinite{"count_nonfinite", make};

}  // namespace thimble
