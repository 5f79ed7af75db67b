// coded_matmul: slabs of the matrix are decoded to the type of x, in scratch, and cuBLASLt makes the
// columns of the result that they give. A 16-bit matrix that goes with its other factor is multiplied
// as it is.
//
//   scratch  | slab, W [columns,K] or [K,columns] | products' |
#include <fmt/format.h>

#include "backend/cuda/multiply/coded_slab.cuh"
#include "backend/cuda/multiply/long_product.h"

namespace thimble {
namespace {

ProductShape coded_product(const Signature& s) {
  const int64_t n = s.outputs[0].shape.back();
  return {.m = s.outputs[0].elements() / n,
          .n = n,
          .k = s.inputs[0].shape.back(),
          .transpose_b = s.attrs.integer("transpose", 1) != 0};
}

class SlabMatmul final : public Kernel {
 public:
  SlabMatmul(const Signature& s, CudaDevice& device)
      : device_(device),
        matrix_(coded_matrix(s.attrs)),
        dtype_(s.inputs[0].dtype),
        shape_(coded_product(s)),
        columns_(slab_columns(shape_.n, shape_.k, size_of(dtype_))),
        full_(product(columns_, s.accumulate != 0)) {
    if (const int64_t rest = shape_.n % columns_; rest > 0) {
      rest_ = product(rest, s.accumulate != 0);
    }
    workspace = slab_bytes() + std::max(full_->scratch(), rest_ ? rest_->scratch() : Bytes());
    name = fmt::format("cublaslt, decoding {}", name_of(matrix_.format));
  }

  void run(const KernelArgs& args) override {
    std::byte* const scratch = args.workspace + slab_bytes().count;
    for (int64_t column = 0; column < shape_.n; column += columns_) {
      const int64_t columns = std::min(columns_, shape_.n - column);
      const SlabPlace place = shape_.transpose_b ? SlabPlace{column, 0, columns, shape_.k}
                                                 : SlabPlace{0, column, shape_.k, columns};
      decode_on_device(matrix_, args.inputs.subspan(1), place, dtype_, args.workspace, device_);
      (columns == columns_ ? full_ : rest_)
          ->run(args.inputs[0].data, args.workspace,
                args.outputs[0].as<std::byte>() + column * size_of(dtype_), scratch);
    }
  }

 private:
  // Of all rows and some columns.
  std::unique_ptr<CublasProduct> product(int64_t columns, bool add) const {
    constexpr Bytes kMost(32 << 20);
    ProductShape shape = shape_;
    shape.n = columns;
    shape.alignment = alignment_of_multiples(columns_ * size_of(dtype_));
    shape.pitch_y = shape_.n;
    return std::make_unique<CublasProduct>(device_, shape, dtype_, dtype_, add,
                                           std::min(scratch_limit(shape, dtype_), kMost));
  }
  Bytes slab_bytes() const { return align_up(Bytes(columns_ * shape_.k * size_of(dtype_))); }

  CudaDevice& device_;
  const CodedMatrix matrix_;
  const DType dtype_;
  const ProductShape shape_;
  const int64_t columns_;  // of the result, in a slab
  std::unique_ptr<CublasProduct> full_, rest_;
};

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  const DType dtype = s.inputs[0].dtype;
  if (!on_device(dtype) || s.outputs[0].elements() == 0) return nullptr;
  if (s.inputs[1].dtype != dtype) return std::make_unique<SlabMatmul>(s, device);
  auto whole = std::make_shared<LongProduct>(device, coded_product(s), dtype, s.accumulate != 0);
  auto kernel = own_kernel(
      [whole](const KernelArgs& args) {
        whole->run(args.inputs[0].data, args.inputs[1].data, args.outputs[0].data, args.workspace);
      },
      whole->scratch());
  kernel->name = whole->name();
  return kernel;
}

}  // namespace

extern const CudaKernel cuda_coded_matmul{"coded_matmul", make};

}  // namespace thimble
