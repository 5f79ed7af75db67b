// coded_matmul(x [...,K], values of a coded matrix W [rows, columns]...) -> y [...,N]
// attrs format, rows, columns (graph/coded_weight.h), transpose (1: y = x W', N = rows; 0: y = x W,
// N = columns). The matrix is frozen: x alone has a gradient. It is decoded a tile at a time, so that
// its numbers never exist whole; they are f32, or bf16 beside an x that is.
#include "graph/builder.h"
#include "graph/coded_weight.h"
#include "ops/checks.h"
#include "ops/reduce/last_axis.h"
#include "ops/reference.h"
#include "ops/row_rules.h"
#include "ops/samples.h"
#include "ops/shape/strided.h"

namespace thimble {
namespace {

bool transposed(const Attrs& attrs) { return attrs.integer("transpose", 1) != 0; }

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs& attrs) {
  const CodedMatrix w = coded_matrix(attrs);
  const std::vector<TensorType> types = w.types();
  check_inputs("coded_matmul", inputs, 1 + types.size());
  for (size_t i = 0; i < types.size(); ++i) {
    check_type("coded_matmul", "a matrix's values as", inputs[1 + i], types[i]);
  }
  const TensorType& x = inputs[0];
  check_rows("coded_matmul", x);
  const int64_t deep = transposed(attrs) ? w.columns : w.rows;
  user_check(x.shape.rank() >= 2 && x.shape.back() == deep,
             "[coded_matmul] wants x [...,{}], got {}", deep, to_string(x));
  const int64_t wide = transposed(attrs) ? w.rows : w.columns;
  return {{with_extent(x.shape, x.shape.rank() - 1, wide), x.dtype}};
}

void gradient(GradientBuilder& g) {
  std::vector<ValueId> inputs(g.node().inputs);
  inputs[0] = g.upstream();
  Attrs attrs = g.attrs();
  attrs.set("transpose", int64_t{!transposed(g.attrs())});
  if (g.wants(0)) g.give(0, g.build().op("coded_matmul", std::move(inputs), std::move(attrs)));
}

// A row of the matrix, decoded, and the sums of one of y.
Bytes reference_workspace(const Signature& s) {
  const CodedMatrix w = coded_matrix(s.attrs);
  return TensorType{{w.columns}, DType::f32}.bytes() +
         TensorType{{s.outputs[0].elements()}, statistics_dtype(s.inputs[0].dtype)}.bytes();
}

void reference(const KernelArgs& args) {
  const CodedMatrix w = coded_matrix(*args.attrs);
  const CodedNumbers numbers = coded_numbers(w, args.inputs.subspan(1));
  const bool turned = transposed(*args.attrs);
  const int64_t deep = turned ? w.columns : w.rows, wide = turned ? w.rows : w.columns;
  const int64_t rows = args.outputs[0].elements() / wide;
  with_float_type(args.inputs[0].type.dtype, [&]<class T>(TypeTag<T>) {
    using Real = Accumulator<T>;
    const T* const x = args.inputs[0].as<T>();
    auto* const sums = reinterpret_cast<Real*>(args.workspace);
    auto* const row = reinterpret_cast<float*>(sums + rows * wide);
    std::fill_n(sums, rows * wide, Real{0});
    for (int64_t r = 0; r < w.rows; ++r) {
      numbers.decode(r, 0, w.columns, row);
      for (int64_t m = 0; m < rows; ++m) {
        for (int64_t c = 0; c < w.columns; ++c) {
          const int64_t k = turned ? c : r, n = turned ? r : c;
          sums[m * wide + n] += widen(x[m * deep + k]) * static_cast<Real>(row[c]);
        }
      }
    }
    for (int64_t i = 0; i < rows * wide; ++i) {
      store(args.outputs[0].as<T>(), i, sums[i], args.adds_into(0));
    }
  });
}

Work work(const Signature& s) {
  const CodedMatrix w = coded_matrix(s.attrs);
  const double rows =
      static_cast<double>(s.inputs[0].elements()) / static_cast<double>(s.inputs[0].shape.back());
  return {2 * rows * static_cast<double>(w.elements()), 0};
}

Sample sample(CodedFormat format, Shape x, int64_t rows, int64_t columns, bool turned) {
  const CodedMatrix w = {format, rows, columns};
  Sample result = {.inputs = {{x}}, .attrs = attrs_of(w), .fills = {{}}, .differentiate = {0}};
  result.attrs.set("transpose", int64_t{turned});
  for (const TensorType& type : w.types()) {
    result.inputs.push_back(type);
    const bool scale = type.dtype == DType::f32;
    result.fills.push_back(type.dtype == DType::u8 ? Fill{Fill::Kind::bytes}
                           : scale                 ? Fill{Fill::Kind::uniform, 0.5, 1}
                                                   : Fill{});
  }
  return result;
}

std::vector<Sample> samples() {
  std::vector<Sample> result;
  for (const CodedFormat format :
       {CodedFormat::nf4, CodedFormat::int8, CodedFormat::bf16, CodedFormat::f16}) {
    result.push_back(sample(format, {5, 7}, 9, 7, true));  // blocks across rows, an odd end
    result.push_back(sample(format, {3, 2, 9}, 9, 7, false));
    result.push_back(sample(format, {13, 128}, 70, 128, true));  // whole blocks in rows
    result.push_back(sample(format, {4, 70}, 70, 192, false));
  }
  return and_added(std::move(result));
}

std::optional<ProductForm> product(const Attrs& attrs, size_t) {
  return ProductForm{.row_per_output = transposed(attrs)};
}

}  // namespace

extern const OpDef op_coded_matmul{
    .name = "coded_matmul",
    .summary = "matrix product with a frozen matrix in few bits, decoded a tile at a time",
    .infer = infer,
    .gradient = gradient,
    .reference = reference,
    .reference_workspace = reference_workspace,
    .work = work,
    .samples = samples,
    .rows = rows_by_slice<1>,
    .recompute = Recompute::costly,
    .product = product,
    .maps = 1u << 1,
    .decodes = true,
    .accumulates = 1,
};

}  // namespace thimble
