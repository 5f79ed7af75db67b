// slice_backward: zeros, then rows of neighbours; added into, the rows alone.
#include "backend/cpu/shape/copy_rows.h"

namespace thimble {
namespace {

class SliceBackward final : public Kernel {
 public:
  explicit SliceBackward(const Signature& s) : size_(size_of(s.outputs[0].dtype)) {
    name = "own";
    const Shape& dx = s.outputs[0].shape;
    const auto axis = static_cast<int>(s.attrs.integer("axis"));
    const int64_t inner = dx.product(axis + 1, dx.rank());
    const int64_t part = s.inputs[0].shape[axis] * inner;
    rows_ = {dx.product(0, axis), part, part, dx[axis] * inner};
    begin_ = s.attrs.integer("begin") * inner;
  }
  void run(const KernelArgs& args) override {
    auto* dx = args.outputs[0].as<std::byte>();
    if (!args.adds_into(0)) {
      Parts(rows_.outer * rows_.to_pitch * size_, 1).run([&](int, int64_t begin, int64_t end) {
        std::memset(dx + begin, 0, static_cast<size_t>(end - begin));
      });
    }
    copy_rows(rows_, size_, args.inputs[0].data, dx + begin_ * size_, args.adds_into(0));
  }

 private:
  const int64_t size_;
  CopyRows rows_{};
  int64_t begin_ = 0;
};

std::unique_ptr<Kernel> make(const Signature& s) {
  return can_copy(s) ? std::make_unique<SliceBackward>(s) : nullptr;
}

}  // namespace

extern const CpuKernel cpu_slice_backward;
const CpuKernel cpu_slice_backward{"slice_backward", make};

}  // namespace thimble
