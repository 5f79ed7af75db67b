// matmul: transposes are strides, one matrix for a whole batch is one product of all rows. An
// addend is first copied to the result, and the product adds to it.
#include "backend/cpu/cpu_kernel.h"
#include "backend/cpu/multiply/product.h"
#include "backend/cpu/multiply/row_product.h"
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

void copy_addend(const KernelArgs& args) {
  const TensorRef& y = args.outputs[0];
  if (args.inputs.size() <= 2 || args.inputs[2].data == y.data) return;
  const int64_t count = y.elements();
  copy_rows({1, count, count, count}, y.type.dtype, args.inputs[2].data, y.data, false);
}

class Matmul final : public Kernel {
 public:
  explicit Matmul(const Signature& s) : product_(product_shape(s)) {
    name = product_.name();
    workspace = Bytes(static_cast<int64_t>(product_.scratch_bytes()));
  }
  void run(const KernelArgs& args) override {
    copy_addend(args);
    product_.run(args.inputs[0].data, args.inputs[1].data, args.outputs[0].data, args.workspace);
  }

 private:
  Product product_;
};

class RowMatmul final : public Kernel {
 public:
  static bool fits(const Signature& s) {
    const auto shape = matmul_shape<DnnlProductShape>(s);
    return shape.batch == 1 && shape.m == 1 && shape.transpose_b && shape.n > 0 && shape.k > 0;
  }
  explicit RowMatmul(const Signature& s)
      : shape_(product_shape(s)), product_(shape_.n, shape_.k, shape_.add) {
    name = "own, by row";
    workspace = product_.workspace();
  }
  void run(const KernelArgs& args) override {
    copy_addend(args);
    const TensorRef& w = args.inputs[1];
    product_.run(args.inputs[0], args.outputs[0], args.workspace,
                 [&](int64_t n, int64_t first, int64_t count, float* room) {
                   return as_f32(w, n * shape_.k + first, count, room);
                 });
  }

 private:
  const DnnlProductShape shape_;
  const RowProduct product_;
};

bool fits(const Signature& s) {
  return one_stageable_type(s) && (s.inputs.size() == 2 || s.accumulate == 0);
}

std::unique_ptr<Kernel> make(const Signature& s) {
  if (fits(s) && RowMatmul::fits(s)) return std::make_unique<RowMatmul>(s);
  return make_if_supported_where<Matmul, fits>(s);
}

}  // namespace

extern const CpuKernel cpu_matmul{"matmul", make};

}  // namespace thimble
