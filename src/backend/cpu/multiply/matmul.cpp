// matmul: transposes are strides, one matrix for a whole batch is one product of all rows. An
// addend is first copied to the result, and the product adds to it.
#include "backend/cpu/cpu_kernel.h"
#include "backend/cpu/multiply/product.h"
#include "backend/cpu/shape/copy_rows.h"
#include "backend/matmul_shape.h"

namespace thimble {
namespace {

DnnlProductShape product_shape(const Signature& s) {
  auto shape = matmul_shape<DnnlProductShape>(s);
  shape.add = s.accumulate != 0 || s.inputs.size() > 2;
  shape.set_factors(s.inputs[0].dtype);
  shape.result = s.outputs[0].dtype;
  return shape;
}

class Matmul final : public Kernel {
 public:
  explicit Matmul(const Signature& s) : product_(product_shape(s)) {
    name = product_.name();
    workspace = Bytes(static_cast<int64_t>(product_.scratch_bytes()));
  }
  void run(const KernelArgs& args) override {
    const TensorRef& y = args.outputs[0];
    if (args.inputs.size() > 2 && args.inputs[2].data != y.data) {
      const int64_t count = y.elements();
      copy_rows({1, count, count, count}, y.type.dtype, args.inputs[2].data, y.data, false);
    }
    product_.run(args.inputs[0].data, args.inputs[1].data, args.outputs[0].data, args.workspace);
  }

 private:
  Product product_;
};

bool fits(const Signature& s) {
  return one_stageable_type(s) && (s.inputs.size() == 2 || s.accumulate == 0);
}

}  // namespace

extern const CpuKernel cpu_matmul{"matmul", make_if_supported_where<Matmul, fits>};

}  // namespace thimble
