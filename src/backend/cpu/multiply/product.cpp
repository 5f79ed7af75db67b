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

}  // namespace

Product::Product(const DnnlProductShape& s) {
  check_countable("matmul", {s.batch, s.m, s.n, s.k});
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  const auto pd = pick_implementation<dnnl::matmul>(
      dnnl::matmul::desc(matrices(s.batch, s.m, s.k, s.transpose_a),
                         matrices(s.batch, s.k, s.n, s.transpose_b),
                         matrices(s.batch, s.m, s.n, false)),
      dnnl_attributes(s.add), engine);
  multiply_ = DnnlCall(engine, dnnl::matmul(pd),
                       {{DNNL_ARG_SRC, pd.src_desc()},
                        {DNNL_ARG_WEIGHTS, pd.weights_desc()},
                        {DNNL_ARG_DST, pd.dst_desc()},
                        {DNNL_ARG_SCRATCHPAD, pd.scratchpad_desc()}});
  scratch_bytes_ = pd.scratchpad_desc().get_size();
  implementation_ = pd.impl_info_str();
}

}  // namespace thimble
