#include "backend/cpu/multiply/product.h"

namespace thimble {
namespace {

using Desc = dnnl::memory::desc;
constexpr auto kFloat = dnnl::memory::data_type::f32;

// [rows, columns] (of `batch` matrices), stored row by row or, transposed, column by column.
Desc matrices(int64_t batch, int64_t rows, int64_t columns, bool transposed) {
  const int64_t down = transposed ? 1 : columns, right = transposed ? rows : 1;
  if (batch == 1) return Desc({rows, columns}, kFloat, {down, right});
  return Desc({batch, rows, columns}, kFloat, {rows * columns, down, right});
}

// The same products from their stored forms.
template <class Left, class Right>
void run_own(const PackedProduct& product, const DnnlProductShape& s, const float* a,
             const float* b, float* y, std::byte* scratch) {
  struct Factors {
    Left left;
    Right right;
    float* y;
  };
  product.run(
      [&](int64_t i) {
        return Factors{{a + i * s.m * s.k, s.transpose_a ? s.m : s.k},
                       {b + i * s.k * s.n, s.transpose_b ? s.k : s.n},
                       y + i * s.m * s.n};
      },
      scratch);
}

}  // namespace

Product::Product(const DnnlProductShape& s) : shape_(s) {
  check_countable("matmul", {s.batch, s.m, s.n, s.k});
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  const auto pd = pick_implementation<dnnl::matmul>(
      dnnl::matmul::desc(matrices(s.batch, s.m, s.k, s.transpose_a),
                         matrices(s.batch, s.k, s.n, s.transpose_b),
                         matrices(s.batch, s.m, s.n, false)),
      dnnl_attributes(s.add), engine);
  if (draws_memory(pd)) {
    own_ = PackedProduct({.batch = s.batch, .m = s.m, .n = s.n, .k = s.k, .add = s.add},
                         s.transpose_a, micro_kernel_beside_library());
    scratch_bytes_ = own_.scratch_bytes();
    name_ = "own " + own_.name();
    return;
  }
  multiply_ = DnnlCall(engine, dnnl::matmul(pd),
                       {{DNNL_ARG_SRC, pd.src_desc()},
                        {DNNL_ARG_WEIGHTS, pd.weights_desc()},
                        {DNNL_ARG_DST, pd.dst_desc()},
                        {DNNL_ARG_SCRATCHPAD, pd.scratchpad_desc()}});
  scratch_bytes_ = pd.scratchpad_desc().get_size();
  name_ = std::string("onednn ") + pd.impl_info_str();
}

void Product::run(const void* a, const void* b, void* y, std::byte* scratch) {
  if (!own_) {
    multiply_.run({a, b, y, scratch});
    return;
  }
  const auto run =
      shape_.transpose_a
          ? (shape_.transpose_b ? run_own<ColumnsOfA, ColumnsOfB> : run_own<ColumnsOfA, RowsOfB>)
          : (shape_.transpose_b ? run_own<RowsOfA, ColumnsOfB> : run_own<RowsOfA, RowsOfB>);
  run(own_, shape_, static_cast<const float*>(a), static_cast<const float*>(b),
      static_cast<float*>(y), scratch);
}

const MicroKernel& micro_kernel_beside_library() {
  const std::span<const MicroKernel> kernels = micro_kernels();
  const dnnl::cpu_isa isa = dnnl::get_effective_cpu_isa();
  const bool narrow = isa == dnnl::cpu_isa::sse41 || isa == dnnl::cpu_isa::avx;
  return narrow ? kernels.front() : kernels.back();
}

}  // namespace thimble
