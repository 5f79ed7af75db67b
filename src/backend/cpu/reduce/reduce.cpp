// reduce, where it is a sum or mean over leading axes (gradients of what was repeated along them)
// or over the last ones.
#include "backend/cpu/cpu_kernel.h"
#include "backend/cpu/reduce/column_sums.h"
#include "backend/cpu/reduce/softmax_rows.h"
#include "backend/cpu/rows.h"

namespace thimble {
namespace {

// Over the leading axes: sums of the columns of [rows, columns].
class ReduceLeading final : public Kernel {
 public:
  ReduceLeading(DType x, int64_t rows, int64_t columns, bool mean)
      : factor_(mean ? 1 / static_cast<double>(rows) : 1), sums_(x, rows, columns) {
    name = "own";
    workspace = sums_.workspace();
  }
  void run(const KernelArgs& args) override {
    sums_.run(args.inputs[0], args.workspace, factor_, args.adds_into(0), args.outputs[0]);
  }

 private:
  const double factor_;
  const ColumnSums sums_;
};

// Over the last axes: output r is the sum of a row.
THIMBLE_FOR_EACH_ISA void sum_rows(const KernelArgs& args, int64_t begin, int64_t end) {
  const int64_t columns = args.inputs[0].elements() / args.outputs[0].elements();
  const bool mean = args.attrs->text("kind", "sum") == "mean";
  const double factor = mean ? 1 / static_cast<double>(columns) : 1;
  float* y = args.outputs[0].as<float>();
  for (int64_t r = begin; r < end; ++r) {
    const float* x = args.inputs[0].as<const float>() + r * columns;
    const auto sum = static_cast<float>(factor * row_sum(columns, [=](int64_t c) { return x[c]; }));
    y[r] = args.adds_into(0) ? y[r] + sum : sum;
  }
}

std::unique_ptr<Kernel> make(const Signature& s) {
  const std::string_view kind = s.attrs.text("kind", "sum");
  if (!one_stageable_type(s) || (kind != "sum" && kind != "mean")) return nullptr;
  const Shape& x = s.inputs[0].shape;
  uint32_t reduced = 0;
  for (const int64_t axis : s.attrs.integers("axes")) reduced |= 1u << axis;
  const int count = static_cast<int>(s.attrs.integers("axes").size());
  const uint32_t leading = (1u << count) - 1;
  if (count > 0 && count < x.rank() && reduced == leading) {
    return std::make_unique<ReduceLeading>(s.inputs[0].dtype, x.product(0, count),
                                           x.product(count, x.rank()), kind == "mean");
  }
  if (count > 0 && reduced == leading << (x.rank() - count)) {
    const int64_t rows = x.product(0, x.rank() - count);
    return make_row_kernel(s, rows, x.elements() / rows, sum_rows);
  }
  return nullptr;
}

}  // namespace

extern const CpuKernel cpu_reduce{"reduce", make};

}  // namespace thimble
