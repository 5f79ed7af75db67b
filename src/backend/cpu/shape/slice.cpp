// slice: rows of neighbours.
#include "backend/cpu/shape/copy_rows.h"

namespace thimble {
namespace {

class Slice final : public Kernel {
 public:
  explicit Slice(const Signature& s) : size_(size_of(s.inputs[0].dtype)) {
    name = "own";
    const Shape& x = s.inputs[0].shape;
    const auto axis = static_cast<int>(s.attrs.integer("axis"));
    const int64_t inner = x.product(axis + 1, x.rank());
    const int64_t part = s.outputs[0].shape[axis] * inner;
    rows_ = {x.product(0, axis), part, x[axis] * inner, part};
    begin_ = s.attrs.integer("begin") * inner;
  }
  void run(const KernelArgs& args) override {
    copy_rows(rows_, size_, args.inputs[0].as<const std::byte>() + begin_ * size_,
              args.outputs[0].data, args.adds_into(0));
  }

 private:
  const int64_t size_;
  CopyRows rows_{};
  int64_t begin_ = 0;
};

std::unique_ptr<Kernel> make(const Signature& s) {
  return can_copy(s) ? std::make_unique<Slice>(s) : nullptr;
}

}  // namespace

extern const CpuKernel cpu_slice;
const CpuKernel cpu_slice{"slice", make};

}  // namespace thimble
