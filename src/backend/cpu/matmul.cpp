// matmul: transposes are strides; one matrix for a whole batch is one product of all rows.
#include "backend/cpu/cpu_kernel.h"
#include "backend/cpu/dnnl.h"

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

class Matmul final : public Kernel {
 public:
  explicit Matmul(const Signature& s) {
    const Shape& a = s.inputs[0].shape;
    const Shape& b = s.inputs[1].shape;
    const Shape& y = s.outputs[0].shape;
    const bool transpose_a = s.attrs.integer("transpose_a", 0) != 0;
    const bool transpose_b = s.attrs.integer("transpose_b", 0) != 0;
    const bool shared = b.rank() == 2;
    const int64_t leading = a.product(0, a.rank() - 2);
    const int64_t batch = shared ? 1 : leading;
    const int64_t m = shared ? leading * y.back(2) : y.back(2);
    const int64_t n = y.back(1), k = transpose_a ? a.back(2) : a.back(1);

    const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
    const auto pd = pick_implementation([&] {
      return dnnl::matmul::primitive_desc(
          dnnl::matmul::desc(matrices(batch, m, k, transpose_a), matrices(batch, k, n, transpose_b),
                             matrices(batch, m, n, false)),
          dnnl_attributes(s.accumulate != 0), engine);
    });
    multiply_ = DnnlCall(engine, dnnl::matmul(pd),
                         {{DNNL_ARG_SRC, pd.src_desc()},
                          {DNNL_ARG_WEIGHTS, pd.weights_desc()},
                          {DNNL_ARG_DST, pd.dst_desc()},
                          {DNNL_ARG_SCRATCHPAD, pd.scratchpad_desc()}});
    name = std::string("onednn ") + pd.impl_info_str();
    workspace = Bytes(static_cast<int64_t>(pd.scratchpad_desc().get_size()));
  }

  void run(const KernelArgs& args) override {
    multiply_.run({args.inputs[0].data, args.inputs[1].data, args.outputs[0].data, args.workspace});
  }

 private:
  DnnlCall multiply_;
};

std::unique_ptr<Kernel> make(const Signature& s) {
  return all_f32(s) ? make_if_supported<Matmul>(s) : nullptr;
}

}  // namespace

extern const CpuKernel cpu_matmul;
const CpuKernel cpu_matmul{"matmul", make};

}  // namespace thimble
