#include "backend/cpu/multiply/product.h"

#include <array>
#include <optional>

namespace thimble {
namespace {

using Desc = dnnl::memory::desc;
// [rows, columns] (of `batch` matrices), stored row by row or, transposed, column by column.
Desc matrices(DType dtype, int64_t batch, int64_t rows, int64_t columns, bool transposed) {
  const int64_t down = transposed ? 1 : columns, right = transposed ? rows : 1;
  if (batch == 1) return Desc({rows, columns}, dnnl_type(dtype), {down, right});
  return Desc({batch, rows, columns}, dnnl_type(dtype), {rows * columns, down, right});
}

// The products of an own product, from the forms in which their matrices are stored.
template <class Left, class Right, class Y>
struct StoredFactors {
  Left left;
  Right right;
  Y y;
};

// The matrix that begins `offset` numbers behind `data`.
template <class Matrix>
Matrix matrix_at(const void* data, int64_t offset, int64_t pitch, DType dtype) {
  if constexpr (std::is_base_of_v<NarrowMatrix, Matrix>) {
    return Matrix{{static_cast<const uint16_t*>(data) + offset, pitch, dtype}};
  } else {
    return Matrix{static_cast<const float*>(data) + offset, pitch};
  }
}

template <class Left, class Right>
void run_stored(const PackedProduct& product, const DnnlProductShape& s, const void* a,
                const void* b, void* y, std::byte* scratch) {
  const auto left = [&](int64_t i) {
    return matrix_at<Left>(a, i * s.m * s.k, s.transpose_a ? s.m : s.k, s.a);
  };
  const auto right = [&](int64_t i) {
    return matrix_at<Right>(b, i * s.k * s.n, s.transpose_b ? s.k : s.n, s.b);
  };
  if (s.result == DType::f32) {
    product.run(
        [&](int64_t i) {
          return StoredFactors<Left, Right, float*>{left(i), right(i),
                                                    static_cast<float*>(y) + i * s.m * s.n};
        },
        scratch);
    return;
  }
  product.run(
      [&](int64_t i) {
        return StoredFactors<Left, Right, NarrowRows>{
            left(i), right(i), {static_cast<uint16_t*>(y) + i * s.m * s.n, s.result}};
      },
      scratch);
}

// The library's product, unless it draws memory, or widens 16-bit factors only to multiply them in
// plain loops.
std::optional<dnnl::matmul::primitive_desc> product_of_library(const DnnlProductShape& s,
                                                               const dnnl::engine& engine) {
  const bool narrow = s.b != DType::f32;
  if (s.a != s.b || s.b == DType::f16) return std::nullopt;
  try {
    const auto pd = pick_implementation<dnnl::matmul>(
        dnnl::matmul::desc(matrices(s.a, s.batch, s.m, s.k, s.transpose_a),
                           matrices(s.b, s.batch, s.k, s.n, s.transpose_b),
                           matrices(s.result, s.batch, s.m, s.n, false)),
        dnnl_attributes(s.add), engine);
    if (draws_memory(pd) || (narrow && !multiplies_narrow(pd))) return std::nullopt;
    return pd;
  } catch (const dnnl::error&) {
    if (!narrow) throw;
    return std::nullopt;
  }
}

// The kernel beside the library, or one of narrower tiles where those hold all columns.
const MicroKernel& micro_kernel_for(int64_t columns) {
  const MicroKernel* pick = &micro_kernel_beside_library();
  for (const MicroKernel& kernel : micro_kernels()) {
    if (kernel.wide >= columns && kernel.wide < pick->wide) return kernel;
  }
  return *pick;
}

}  // namespace

Product::Product(const DnnlProductShape& s) : shape_(s) {
  check_countable("matmul", {s.batch, s.m, s.n, s.k});
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  const auto library = product_of_library(s, engine);
  if (!library) {
    own_ = PackedProduct({.batch = s.batch,
                          .m = s.m,
                          .n = s.n,
                          .k = s.k,
                          .add = s.add,
                          .narrow = s.result != DType::f32},
                         s.transpose_a || s.a != DType::f32,
                         s.b == DType::f32 ? micro_kernel_beside_library() : micro_kernel_for(s.n));
    scratch_bytes_ = own_.scratch_bytes();
    name_ = "own " + own_.name();
    return;
  }
  const dnnl::matmul::primitive_desc& pd = *library;
  multiply_ = DnnlCall(engine, dnnl::matmul(pd),
                       {{DNNL_ARG_SRC, pd.src_desc()},
                        {DNNL_ARG_WEIGHTS, pd.weights_desc()},
                        {DNNL_ARG_DST, pd.dst_desc()},
                        {DNNL_ARG_SCRATCHPAD, pd.scratchpad_desc()}});
  scratch_bytes_ = pd.scratchpad_desc().get_size();
  name_ = std::string("onednn ") + pd.impl_info_str();
}

bool Product::native(DType factors) {
  const DnnlProductShape small = {.m = 16, .n = 16, .k = 16, .a = factors, .b = factors};
  return product_of_library(small, dnnl::engine(dnnl::engine::kind::cpu, 0)).has_value();
}

void Product::run(const void* a, const void* b, void* y, std::byte* scratch) {
  if (!own_) {
    multiply_.run({a, b, y, scratch});
    return;
  }
  constexpr std::array kF32 = {run_stored<RowsOfA, RowsOfB>, run_stored<RowsOfA, ColumnsOfB>,
                               run_stored<ColumnsOfA, RowsOfB>, run_stored<ColumnsOfA, ColumnsOfB>};
  constexpr std::array kMixed = {
      run_stored<RowsOfA, NarrowRowsOfB>, run_stored<RowsOfA, NarrowColumnsOfB>,
      run_stored<ColumnsOfA, NarrowRowsOfB>, run_stored<ColumnsOfA, NarrowColumnsOfB>};
  constexpr std::array kNarrow = {
      run_stored<NarrowRowsOfA, NarrowRowsOfB>, run_stored<NarrowRowsOfA, NarrowColumnsOfB>,
      run_stored<NarrowColumnsOfA, NarrowRowsOfB>, run_stored<NarrowColumnsOfA, NarrowColumnsOfB>};
  const size_t stored = (shape_.transpose_a ? 2 : 0) + (shape_.transpose_b ? 1 : 0);
  const auto& of_types = shape_.a != DType::f32 ? kNarrow : shape_.b != DType::f32 ? kMixed : kF32;
  of_types[stored](own_, shape_, a, b, y, scratch);
}

const MicroKernel& micro_kernel_beside_library() {
  const std::span<const MicroKernel> kernels = micro_kernels();
  size_t widest = 2;
  switch (dnnl::get_effective_cpu_isa()) {
    case dnnl::cpu_isa::sse41:
    case dnnl::cpu_isa::avx:
      widest = 0;
      break;
    case dnnl::cpu_isa::avx2:
    case dnnl::cpu_isa::avx2_vnni:
      widest = 1;
      break;
    default:
      break;
  }
  return kernels[std::min(widest, kernels.size() - 1)];
}

}  // namespace thimble
