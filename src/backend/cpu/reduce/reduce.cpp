// reduce: over leading axes (gradients of what was repeated along them) or the last ones by kernels of
// their own, over any others row by row.
#include <limits>

#include "backend/cpu/cpu_kernel.h"
#include "backend/cpu/reduce/column_sums.h"
#include "backend/cpu/reduce/softmax_rows.h"
#include "backend/cpu/rows.h"
#include "backend/cpu/shape/strided_rows.h"

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

THIMBLE_FOR_EACH_ISA void add_row(const float* __restrict x, int64_t count, double* __restrict y) {
  for (int64_t i = 0; i < count; ++i) y[i] += static_cast<double>(x[i]);
}
// A NaN wins over everything.
THIMBLE_FOR_EACH_ISA void larger_of_row(const float* __restrict x, int64_t count,
                                        double* __restrict y) {
  for (int64_t i = 0; i < count; ++i) {
    const auto value = static_cast<double>(x[i]);
    y[i] = value > y[i] || value != value ? value : y[i];
  }
}
THIMBLE_FOR_EACH_ISA double sum_of_row(const float* x, int64_t count) {
  return row_sum(count, [=](int64_t i) { return x[i]; });
}

// Over any axes. Where the last one stays, rows of it are added up element by element, else every
// result is the sum of rows.
class ReduceAny final : public Kernel {
 public:
  ReduceAny(const Signature& s, bool mean, bool largest) : largest_(largest) {
    const Shape& x = s.inputs[0].shape;
    Shape kept = x, reduced = x;
    for (int axis = 0; axis < x.rank(); ++axis) {
      const auto& axes = s.attrs.integers("axes");
      const bool goes = std::ranges::find(axes, int64_t{axis}) != axes.end();
      Shape& one = goes ? kept : reduced;
      one = with_extent(one, axis, 1);
    }
    kept_ = StridedRows<1>(kept, {row_major(x)});
    reduced_ = StridedRows<1>(reduced, {row_major(x)});
    by_elements_ = kept_.steps[0] == 1;
    factor_ = mean ? 1 / static_cast<double>(reduced.elements()) : 1;
    pieces_ = by_elements_ ? (kept_.count + kPiece - 1) / kPiece : kept_.count;
    parts_ = Parts(kept_.rows * pieces_, x.elements() / (kept_.rows * pieces_));
    name = "own";
  }

  void run(const KernelArgs& args) override {
    parts_.run([&](int, int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t row = i / pieces_, piece = i % pieces_, at = kept_.begin(row)[0];
        double sums[kPiece];
        if (by_elements_) {
          const int64_t first = piece * kPiece, count = std::min(kPiece, kept_.count - first);
          add_rows(args.inputs[0], at + first, count, sums);
          store(args, row * kept_.count + first, count, sums);
        } else {
          sums[0] = of_rows(args.inputs[0], at + piece * kept_.steps[0]);
          store(args, i, 1, sums);
        }
      }
    });
  }

 private:
  static constexpr int64_t kPiece = 512;

  double start() const { return largest_ ? -std::numeric_limits<double>::infinity() : 0; }

  void add_rows(const TensorRef& x, int64_t at, int64_t count, double* sums) const {
    float room[kPiece];
    std::fill_n(sums, count, start());
    for (int64_t row = 0; row < reduced_.rows; ++row) {
      int64_t from = at + reduced_.begin(row)[0];
      for (int64_t i = 0; i < reduced_.count; ++i, from += reduced_.steps[0]) {
        (largest_ ? larger_of_row : add_row)(as_f32(x, from, count, room), count, sums);
      }
    }
  }

  double of_rows(const TensorRef& x, int64_t at) const {
    double result = start();
    for (int64_t row = 0; row < reduced_.rows; ++row) {
      const int64_t from = at + reduced_.begin(row)[0];
      for (int64_t i = 0; i < reduced_.count; i += kPiece) {
        float room[kPiece];
        const int64_t count = std::min(kPiece, reduced_.count - i);
        const float* const numbers = as_f32(x, from + i, count, room);
        if (!largest_) {
          result += sum_of_row(numbers, count);
          continue;
        }
        for (int64_t j = 0; j < count; ++j) larger_of_row(numbers + j, 1, &result);
      }
    }
    return result;
  }

  void store(const KernelArgs& args, int64_t first, int64_t count, const double* sums) const {
    const TensorRef& y = args.outputs[0];
    float room[kPiece];
    float* const to = room_for(y, first, room);
    const bool add = args.adds_into(0);
    if (add && y.type.dtype != DType::f32) widen(y, first, count, to);
    for (int64_t i = 0; i < count; ++i) {
      const auto value = static_cast<float>(factor_ * sums[i]);
      to[i] = add ? to[i] + value : value;
    }
    commit(to, y, first, count);
  }

  const bool largest_;
  StridedRows<1> kept_, reduced_;
  bool by_elements_ = false;  // the last axis stays
  double factor_ = 1;
  int64_t pieces_ = 1;  // of a row of what is kept
  Parts parts_{0, 0};
};

std::unique_ptr<Kernel> make(const Signature& s) {
  const std::string_view kind = s.attrs.text("kind", "sum");
  if (!one_stageable_type(s)) return nullptr;
  if (kind == "max") return std::make_unique<ReduceAny>(s, false, true);
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
  return std::make_unique<ReduceAny>(s, kind == "mean", false);
}

}  // namespace

extern const CpuKernel cpu_reduce{"reduce", make};

}  // namespace thimble
