// matmul: cuBLASLt. Its matrices are stored by columns, ours by rows: so it is asked for the
// transposed product, y' = op(b)' op(a)'.
#include <array>

#include "backend/cuda/cuda_kernel.h"
#include "backend/cuda/numbers.h"
#include "base/error.h"

namespace thimble {
namespace {

struct ProductShape {
  int64_t batch, m, n, k;
  bool transpose_a, transpose_b;
};

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
          .transpose_b = s.attrs.integer("transpose_b", 0) != 0};
}

cudaDataType_t data_type(DType dtype) {
  return dtype == DType::f16 ? CUDA_R_16F : dtype == DType::bf16 ? CUDA_R_16BF : CUDA_R_32F;
}

class Layout {
 public:
  Layout(DType dtype, int64_t rows, int64_t columns, int64_t batch) {
    check(cublasLtMatrixLayoutCreate(&layout_, data_type(dtype), static_cast<uint64_t>(rows),
                                     static_cast<uint64_t>(columns), rows),
          "a matrix");
    const auto count = static_cast<int32_t>(batch);
    const int64_t stride = rows * columns;
    check(cublasLtMatrixLayoutSetAttribute(layout_, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count,
                                           sizeof count),
          "a batch");
    check(cublasLtMatrixLayoutSetAttribute(layout_, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                           &stride, sizeof stride),
          "a batch");
  }
  ~Layout() { cublasLtMatrixLayoutDestroy(layout_); }
  Layout(const Layout&) = delete;
  Layout& operator=(const Layout&) = delete;

  operator cublasLtMatrixLayout_t() const { return layout_; }

 private:
  cublasLtMatrixLayout_t layout_ = nullptr;
};

class Matmul final : public Kernel {
 public:
  Matmul(const Signature& s, CudaDevice& device)
      : Matmul(product_shape(s), s.outputs[0].dtype, s.accumulate != 0, device) {}
  ~Matmul() override { cublasLtMatmulDescDestroy(product_); }
  Matmul(const Matmul&) = delete;
  Matmul& operator=(const Matmul&) = delete;

  void run(const KernelArgs& args) override {
    const float one = 1, add = add_ ? 1.0f : 0.0f;
    void* const y = args.outputs[0].data;
    check(cublasLtMatmul(device_.cublas, product_, &one, args.inputs[1].data, b_,
                         args.inputs[0].data, a_, &add, y, y_, y, y_, &algorithm_, args.workspace,
                         static_cast<size_t>(workspace.count), device_.stream),
          "a product");
  }

 private:
  Matmul(const ProductShape& p, DType dtype, bool add, CudaDevice& device)
      : device_(device),
        add_(add),
        a_(dtype, p.transpose_a ? p.m : p.k, p.transpose_a ? p.k : p.m, p.batch),
        b_(dtype, p.transpose_b ? p.k : p.n, p.transpose_b ? p.n : p.k, p.batch),
        y_(dtype, p.n, p.m, p.batch) {
    const bool rounds = dtype == DType::f32 && device.tf32;
    check(cublasLtMatmulDescCreate(
              &product_, rounds ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F, CUDA_R_32F),
          "a product");
    const cublasOperation_t op_a = p.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N;
    const cublasOperation_t op_b = p.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N;
    check(cublasLtMatmulDescSetAttribute(product_, CUBLASLT_MATMUL_DESC_TRANSA, &op_b, sizeof op_b),
          "a transpose");
    check(cublasLtMatmulDescSetAttribute(product_, CUBLASLT_MATMUL_DESC_TRANSB, &op_a, sizeof op_a),
          "a transpose");
    const int64_t elements = p.batch * (p.m * p.k + p.k * p.n + p.m * p.n);
    choose(static_cast<size_t>(elements * size_of(dtype) / 16));
  }

  // The first suggestion whose sums have one order, in scratch that is little beside the matrices.
  void choose(size_t most_scratch) {
    cublasLtMatmulPreference_t wishes = nullptr;
    check(cublasLtMatmulPreferenceCreate(&wishes), "a preference");
    const uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_NONE |
                                CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE |
                                CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE;
    cublasLtMatmulPreferenceSetAttribute(wishes, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                         &most_scratch, sizeof most_scratch);
    cublasLtMatmulPreferenceSetAttribute(wishes, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                                         &reductions, sizeof reductions);
    cublasLtMatmulHeuristicResult_t found{};
    int count = 0;
    const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
        device_.cublas, product_, b_, a_, y_, y_, wishes, 1, &found, &count);
    cublasLtMatmulPreferenceDestroy(wishes);
    check(status, "choosing a product");
    user_check(count == 1, "cuBLASLt has no deterministic product for this shape");
    algorithm_ = found.algo;
    workspace = Bytes(static_cast<int64_t>(found.workspaceSize));
    name = "cublaslt";
  }

  CudaDevice& device_;
  const bool add_;
  Layout a_, b_, y_;
  cublasLtMatmulDesc_t product_ = nullptr;
  cublasLtMatmulAlgo_t algorithm_{};
};

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  const DType dtype = s.outputs[0].dtype;
  const bool fits = on_device(dtype) && s.inputs[0].dtype == dtype && s.inputs[1].dtype == dtype;
  return fits ? std::make_unique<Matmul>(s, device) : nullptr;
}

}  // namespace

extern const CudaKernel cuda_matmul;
const CudaKernel cuda_matmul{"matmul", make};

}  // namespace thimble
