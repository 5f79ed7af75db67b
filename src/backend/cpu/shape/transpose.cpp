// transpose: a copy between two layouts, which is what oneDNN's reorder does well.
#include "backend/cpu/cpu_kernel.h"
#include "backend/cpu/dnnl.h"

namespace thimble {
namespace {

class Transpose final : public Kernel {
 public:
  explicit Transpose(const Signature& s) {
    const Shape& x = s.inputs[0].shape;
    dnnl::memory::dims dims, from, to;
    for (const int64_t axis : s.attrs.integers("perm")) {
      dims.push_back(x[static_cast<int>(axis)]);
      from.push_back(x.product(static_cast<int>(axis) + 1, x.rank()));
    }
    const Shape& y = s.outputs[0].shape;
    for (int axis = 0; axis < y.rank(); ++axis) to.push_back(y.product(axis + 1, y.rank()));
    constexpr auto kFloat = dnnl::memory::data_type::f32;
    move_ = dnnl_reorder(dnnl::engine(dnnl::engine::kind::cpu, 0), {dims, kFloat, from},
                         {dims, kFloat, to}, s.accumulate != 0);
    name = "onednn reorder";
  }
  void run(const KernelArgs& args) override {
    move_.run({args.inputs[0].data, args.outputs[0].data});
  }

 private:
  DnnlCall move_;
};

std::unique_ptr<Kernel> make(const Signature& s) {
  if (!all_f32(s) || s.inputs[0].shape.rank() == 0) return nullptr;
  return make_if_supported<Transpose>(s);
}

}  // namespace

extern const CpuKernel cpu_transpose{"transpose", make};

}  // namespace thimble
