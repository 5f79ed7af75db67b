#include "backend/cuda/multiply/cublas_product.h"

#include <algorithm>

#include "base/error.h"

namespace thimble {
namespace {

constexpr int64_t kScratchAlignment = 256;  // cuBLASLt's, more than an arena's

cudaDataType_t data_type(DType dtype) {
  return dtype == DType::f16 ? CUDA_R_16F : dtype == DType::bf16 ? CUDA_R_16BF : CUDA_R_32F;
}

// Matrices stored by columns, one `apart` numbers behind the other, columns `pitch` apart.
struct Matrices {
  int64_t rows, columns, pitch, apart;
};

cublasLtMatrixLayout_t layout(DType dtype, const Matrices& m, int64_t count) {
  cublasLtMatrixLayout_t made = nullptr;
  check(cublasLtMatrixLayoutCreate(&made, data_type(dtype), static_cast<uint64_t>(m.rows),
                                   static_cast<uint64_t>(m.columns), m.pitch),
        "a matrix");
  const auto batch = static_cast<int32_t>(count);
  cublasLtMatrixLayoutSetAttribute(made, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch, sizeof batch);
  cublasLtMatrixLayoutSetAttribute(made, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &m.apart,
                                   sizeof m.apart);
  return made;
}

// A factor with the numbers of its sums in each column, or of which each is a column; parts of the
// depth lie inside one matrix.
Matrices factor(bool depth_first, const ProductShape& p, int64_t others) {
  const int64_t part = p.part_depth();
  if (depth_first) return {part, others, p.k, p.parts > 1 ? part : p.k * others};
  return {others, part, others, part * others};
}

}  // namespace

// cuBLASLt's matrices are stored by columns, ours by rows: so it is asked for the transposed
// product, y' = op(b)' op(a)'.
CublasProduct::CublasProduct(CudaDevice& device, const ProductShape& p, DType factors, DType result,
                             bool add, Bytes most_scratch, int most_guesses)
    : device_(device), add_(add ? 1.0f : 0.0f) {
  const int64_t in_parts = p.parts * p.part_depth();
  internal_check(in_parts == p.k || (p.batch == 1 && p.part > 0 && in_parts < p.k),
                 "only the depth of one product is cut, into equal parts");
  internal_check((p.pitch_a == 0 && p.pitch_y == 0) || p.batch * p.parts == 1,
                 "only one product has rows with room between them");
  const int64_t count = p.batch * p.parts;
  Matrices a = factor(!p.transpose_a, p, p.m), y = {p.n, p.m, p.n, p.m * p.n};
  if (p.pitch_a > 0) a.pitch = p.pitch_a;
  if (p.pitch_y > 0) y.pitch = p.pitch_y;
  a_ = layout(factors, a, count);
  b_ = layout(factors, factor(p.transpose_b, p, p.n), count);
  y_ = layout(result, y, count);
  const bool rounds = factors == DType::f32 && device.tf32;
  check(cublasLtMatmulDescCreate(
            &product_, rounds ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F, CUDA_R_32F),
        "a product");
  const cublasOperation_t op_a = p.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N;
  const cublasOperation_t op_b = p.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N;
  cublasLtMatmulDescSetAttribute(product_, CUBLASLT_MATMUL_DESC_TRANSA, &op_b, sizeof op_b);
  cublasLtMatmulDescSetAttribute(product_, CUBLASLT_MATMUL_DESC_TRANSB, &op_a, sizeof op_a);
  if (p.bias) {
    const cublasLtEpilogue_t with_bias = CUBLASLT_EPILOGUE_BIAS;
    cublasLtMatmulDescSetAttribute(product_, CUBLASLT_MATMUL_DESC_EPILOGUE, &with_bias,
                                   sizeof with_bias);
  }
  find_algorithms(most_scratch, p.alignment, most_guesses);
}

CublasProduct::~CublasProduct() {
  cublasLtMatmulDescDestroy(product_);
  for (const cublasLtMatrixLayout_t made : {a_, b_, y_}) cublasLtMatrixLayoutDestroy(made);
}

// The first suggestions whose sums have one order.
void CublasProduct::find_algorithms(Bytes most_scratch, int64_t alignment, int most) {
  cublasLtMatmulPreference_t wishes = nullptr;
  check(cublasLtMatmulPreferenceCreate(&wishes), "a preference");
  const uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_NONE |
                              CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE |
                              CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE;
  const auto room = static_cast<size_t>(most_scratch.count);
  cublasLtMatmulPreferenceSetAttribute(wishes, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &room,
                                       sizeof room);
  cublasLtMatmulPreferenceSetAttribute(wishes, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                                       &reductions, sizeof reductions);
  const auto bytes = static_cast<uint32_t>(alignment);
  for (const auto matrix :
       {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
    cublasLtMatmulPreferenceSetAttribute(wishes, matrix, &bytes, sizeof bytes);
  }
  std::vector<cublasLtMatmulHeuristicResult_t> found(static_cast<size_t>(most));
  int count = 0;
  const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
      device_.cublas, product_, b_, a_, y_, y_, wishes, most, found.data(), &count);
  cublasLtMatmulPreferenceDestroy(wishes);
  const bool none = status == CUBLAS_STATUS_NOT_SUPPORTED;
  if (!none) check(status, "choosing a product");
  found.resize(static_cast<size_t>(none ? 0 : count));
  for (const cublasLtMatmulHeuristicResult_t& guess : found) {
    if (guess.state != CUBLAS_STATUS_SUCCESS) continue;
    algorithms_.push_back({guess.algo, guess.workspaceSize});
  }
}

const CublasProduct::Algorithm& CublasProduct::algorithm() const {
  user_check(!algorithms_.empty(), "cuBLASLt has no deterministic product for this shape");
  return algorithms_[used_];
}

Bytes CublasProduct::scratch() const {
  const size_t own = algorithm().scratch;
  return own == 0 ? Bytes() : Bytes(static_cast<int64_t>(own) + kScratchAlignment);
}

void CublasProduct::run(const void* a, const void* b, const void* bias, const void* addend, void* y,
                        std::byte* scratch) const {
  const float one = 1;
  const Algorithm& used = algorithm();
  const auto address = reinterpret_cast<uintptr_t>(scratch) + kScratchAlignment - 1;
  void* const room = reinterpret_cast<void*>(address / kScratchAlignment * kScratchAlignment);
  if (bias != nullptr) {
    cublasLtMatmulDescSetAttribute(product_, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias);
  }
  check(cublasLtMatmul(device_.cublas, product_, &one, b, b_, a, a_, &add_, addend, y_, y, y_,
                       &used.config, used.scratch == 0 ? nullptr : room, used.scratch,
                       device_.stream),
        "a product");
}

int64_t alignment_in_parts(const ProductShape& p, DType factors) {
  if (p.parts == 1) return p.alignment;
  const auto of_factor = [&](bool depth_first, int64_t others) {
    return alignment_of_multiples(p.part_depth() * (depth_first ? 1 : others) * size_of(factors));
  };
  return std::min({p.alignment, of_factor(!p.transpose_a, p.m), of_factor(p.transpose_b, p.n),
                   alignment_of_multiples(p.m * p.n * int64_t{sizeof(float)})});
}

Bytes scratch_limit(const ProductShape& p, DType dtype) {
  const int64_t elements = p.batch * (p.m * p.k + p.k * p.n + p.m * p.n);
  return Bytes(elements * size_of(dtype) / 4);
}

}  // namespace thimble
