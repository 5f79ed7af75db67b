// copy: in place, nothing happens.
#include "backend/cpu/pointwise/elementwise.h"
#include "backend/cpu/shape/copy_rows.h"

namespace thimble {
namespace {

class Copy final : public Kernel {
 public:
  explicit Copy(const Signature& s) : elements_(s.outputs[0].elements()) { name = "own"; }
  void run(const KernelArgs& args) override {
    if (args.inputs[0].data == args.outputs[0].data && !args.adds_into(0)) return;
    copy_rows({1, elements_, elements_, elements_}, args.outputs[0].type.dtype, args.inputs[0].data,
              args.outputs[0].data, args.adds_into(0));
  }

 private:
  const int64_t elements_;
};

THIMBLE_FOR_EACH_ISA void add_range(const KernelArgs& args, int64_t begin, int64_t end) {
  map_unary(args, begin, end, [](float x) { return x; });
}

std::unique_ptr<Kernel> make(const Signature& s) {
  if (s.accumulate != 0 && can_stage(s)) return make_elementwise(s, add_range);
  return can_copy(s) ? std::make_unique<Copy>(s) : nullptr;
}

}  // namespace

extern const CpuKernel cpu_copy{"copy", make};

}  // namespace thimble
