// matmul: transposes are strides; one matrix for a whole batch is one product of all rows.
#include "backend/cpu/cpu_kernel.h"
#include "backend/cpu/product.h"

namespace thimble {
namespace {

ProductShape product_shape(const Signature& s) {
  const Shape& a = s.inputs[0].shape;
  const Shape& y = s.outputs[0].shape;
  const bool shared = s.inputs[1].shape.rank() == 2;
  const bool transpose_a = s.attrs.integer("transpose_a", 0) != 0;
  const int64_t leading = a.product(0, a.rank() - 2);
  return {.batch = shared ? 1 : leading,
          .m = shared ? leading * y.back(2) : y.back(2),
          .n = y.back(1),
          .k = transpose_a ? a.back(2) : a.back(1),
          .transpose_a = transpose_a,
          .transpose_b = s.attrs.integer("transpose_b", 0) != 0,
          .add = s.accumulate != 0};
}

class Matmul final : public Kernel {
 public:
  explicit Matmul(const Signature& s) : product_(product_shape(s)) {
    name = "onednn " + product_.implementation();
    workspace = Bytes(static_cast<int64_t>(product_.scratch_bytes()));
  }
  void run(const KernelArgs& args) override {
    product_.run(args.inputs[0].data, args.inputs[1].data, args.outputs[0].data, args.workspace);
  }

 private:
  Product product_;
};

std::unique_ptr<Kernel> make(const Signature& s) {
  return all_f32(s) ? make_if_supported<Matmul>(s) : nullptr;
}

}  // namespace

extern const CpuKernel cpu_matmul;
const CpuKernel cpu_matmul{"matmul", make};

}  // namespace thimble
