// coded_matmul: our own product, whose right factor decodes itself into panels; a 16-bit matrix that
// goes with its other factor is multiplied as matmul does.
//
// Where the processor multiplies bf16 as it is, few-bit matrices are decoded to that, a slab of the
// result's columns at a time, and oneDNN multiplies slab by slab.
#include "backend/cpu/cpu_kernel.h"
#include "backend/cpu/multiply/coded_factor.h"
#include "backend/cpu/multiply/product.h"
#include "backend/cpu/multiply/row_product.h"

namespace thimble {
namespace {

struct CodedSize {
  int64_t m, n, k;
  bool turned, add;
};

CodedSize size_of_product(const Signature& s) {
  const int64_t n = s.outputs[0].shape.back(), k = s.inputs[0].shape.back();
  return {s.outputs[0].elements() / n, n, k, s.attrs.integer("transpose", 1) != 0,
          s.accumulate != 0};
}

class CodedMatmul final : public Kernel {
 public:
  explicit CodedMatmul(const Signature& s)
      : matrix_(coded_matrix(s.attrs)), dtype_(s.inputs[0].dtype), size_(size_of_product(s)) {
    const bool narrow = dtype_ != DType::f32;
    product_ = PackedProduct(
        {.m = size_.m, .n = size_.n, .k = size_.k, .add = size_.add, .narrow = narrow}, narrow,
        micro_kernel_beside_library());
    name = "own " + product_.name() + ", decoding " + std::string(name_of(matrix_.format));
    workspace = Bytes(static_cast<int64_t>(product_.scratch_bytes()));
  }

  void run(const KernelArgs& args) override {
    const CodedNumbers numbers = coded_numbers(matrix_, args.inputs.subspan(1));
    if (size_.turned) {
      multiply(args, CodedColumnsOfB{numbers});
    } else {
      multiply(args, CodedRowsOfB{numbers});
    }
  }

 private:
  template <class Left, class Right, class Y>
  struct Factors {
    Left left;
    Right right;
    Y y;
  };

  template <class Right>
  void multiply(const KernelArgs& args, const Right& right) const {
    const TensorRef &x = args.inputs[0], &y = args.outputs[0];
    if (dtype_ == DType::f32) {
      const Factors<RowsOfA, Right, float*> all = {
          {x.as<const float>(), size_.k}, right, y.as<float>()};
      product_.run([&](int64_t) { return all; }, args.workspace);
    } else {
      const Factors<NarrowRowsOfA, Right, NarrowRows> all = {
          {{x.as<const uint16_t>(), size_.k, dtype_}}, right, {y.as<uint16_t>(), dtype_}};
      product_.run([&](int64_t) { return all; }, args.workspace);
    }
  }

  const CodedMatrix matrix_;
  const DType dtype_;
  const CodedSize size_;
  PackedProduct product_;
};

// The result's columns in a slab: few enough for a cache, and never all of them.
int64_t columns_of_slab(int64_t columns) {
  constexpr int64_t kMost = 192;
  const int64_t half = (columns / 2 + kNf4Block - 1) / kNf4Block * kNf4Block;
  return std::min(kMost, half);
}

class SlabMatmul final : public Kernel {
 public:
  static bool fits(const Signature& s) {
    const CodedSize size = size_of_product(s);
    return s.inputs[0].dtype == DType::bf16 && Product::native(DType::bf16) &&
           columns_of_slab(size.n) < size.n && size.m > 0;
  }

  explicit SlabMatmul(const Signature& s)
      : matrix_(coded_matrix(s.attrs)),
        size_(size_of_product(s)),
        columns_(columns_of_slab(size_.n)),
        decoding_(size_.turned ? columns_ : size_.k, (size_.turned ? size_.k : columns_) * 4),
        storing_(size_.m, columns_ * 8) {
    full_ = product_of(columns_);
    if (const int64_t rest = size_.n % columns_; rest > 0) rest_ = product_of(rest);
    slab_at_ = rooms_.take(static_cast<size_t>(columns_ * size_.k) * sizeof(uint16_t));
    sums_at_ = rooms_.take(static_cast<size_t>(size_.m * columns_) * sizeof(float));
    scratch_at_ = rooms_.take(std::max(full_.scratch_bytes(), rest_.scratch_bytes()));
    name = full_.name() + ", decoding " + std::string(name_of(matrix_.format));
    workspace = rooms_.total();
  }

  void run(const KernelArgs& args) override {
    const CodedNumbers numbers = coded_numbers(matrix_, args.inputs.subspan(1));
    auto* const slab = reinterpret_cast<uint16_t*>(args.workspace + slab_at_);
    auto* const sums = reinterpret_cast<float*>(args.workspace + sums_at_);
    for (int64_t column = 0; column < size_.n; column += columns_) {
      const int64_t columns = std::min(columns_, size_.n - column);
      decode(numbers, column, columns, slab);
      (columns == columns_ ? full_ : rest_)
          .run(args.inputs[0].data, slab, sums, args.workspace + scratch_at_);
      store(sums, column, columns, args.outputs[0]);
    }
  }

 private:
  static constexpr int64_t kPiece = 512;  // numbers at a time

  Product product_of(int64_t columns) const {
    return Product({.m = size_.m,
                    .n = columns,
                    .k = size_.k,
                    .transpose_b = size_.turned,
                    .a = DType::bf16,
                    .b = DType::bf16});
  }

  // Rounded once, added to what is there where that is asked for.
  void store(float* sums, int64_t column, int64_t columns, const TensorRef& y) const {
    storing_.run([&](int, int64_t begin, int64_t end) {
      float before[kPiece];
      for (int64_t r = begin; r < end; ++r) {
        float* const row = sums + r * columns;
        const int64_t at = r * size_.n + column;
        if (size_.add) {
          widen(y, at, columns, before);
          for (int64_t c = 0; c < columns; ++c) row[c] += before[c];
        }
        narrow(row, y, at, columns);
      }
    });
  }

  // Columns of the result are rows of the matrix where it is turned, else its columns.
  void decode(const CodedNumbers& numbers, int64_t column, int64_t columns, uint16_t* slab) const {
    const int64_t rows = size_.turned ? columns : size_.k;
    const int64_t wide = size_.turned ? size_.k : columns;
    const int64_t first_row = size_.turned ? column : 0, first = size_.turned ? 0 : column;
    decoding_.run([&](int, int64_t begin, int64_t end) {
      float decoded[kPiece];
      for (int64_t r = begin; r < std::min(end, rows); ++r) {
        for (int64_t c = 0; c < wide; c += kPiece) {
          const int64_t some = std::min(kPiece, wide - c);
          decode_row(numbers, first_row + r, first + c, some, decoded);
          narrow(DType::bf16, decoded, some, slab + r * wide + c);
        }
      }
    });
  }

  const CodedMatrix matrix_;
  const CodedSize size_;
  const int64_t columns_;  // of the result, in a slab
  const Parts decoding_;   // rows of a slab
  const Parts storing_;    // rows of the result
  Product full_, rest_;
  WorkspaceParts rooms_;
  int64_t slab_at_ = 0, sums_at_ = 0, scratch_at_ = 0;
};

// Of one row: the matrix is decoded once, a piece of a row at a time.
class CodedRowMatmul final : public Kernel {
 public:
  static bool fits(const Signature& s) {
    const CodedSize size = size_of_product(s);
    return size.m == 1 && size.turned && size.n > 0 && size.k > 0;
  }
  explicit CodedRowMatmul(const Signature& s)
      : matrix_(coded_matrix(s.attrs)),
        product_(size_of_product(s).n, size_of_product(s).k, s.accumulate != 0) {
    name = "own, by row, decoding " + std::string(name_of(matrix_.format));
    workspace = product_.workspace();
  }
  void run(const KernelArgs& args) override {
    const CodedNumbers numbers = coded_numbers(matrix_, args.inputs.subspan(1));
    product_.run(args.inputs[0], args.outputs[0], args.workspace,
                 [&](int64_t n, int64_t first, int64_t count, float* room) {
                   decode_row(numbers, n, first, count, room);
                   return room;
                 });
  }

 private:
  const CodedMatrix matrix_;
  const RowProduct product_;
};

class SixteenBitMatmul final : public Kernel {
 public:
  explicit SixteenBitMatmul(const Signature& s) {
    const CodedSize size = size_of_product(s);
    product_ = Product({.m = size.m,
                        .n = size.n,
                        .k = size.k,
                        .transpose_b = size.turned,
                        .add = size.add,
                        .a = s.inputs[0].dtype,
                        .b = s.inputs[1].dtype,
                        .result = s.outputs[0].dtype});
    name = product_.name();
    workspace = Bytes(static_cast<int64_t>(product_.scratch_bytes()));
  }
  void run(const KernelArgs& args) override {
    product_.run(args.inputs[0].data, args.inputs[1].data, args.outputs[0].data, args.workspace);
  }

 private:
  Product product_;
};

std::unique_ptr<Kernel> make(const Signature& s) {
  if (!stageable_input(s)) return nullptr;
  if (CodedRowMatmul::fits(s)) return std::make_unique<CodedRowMatmul>(s);
  const DType x = s.inputs[0].dtype, w = s.inputs[1].dtype;
  const bool as_they_are = is_sixteen_bit(w) && (x == DType::f32 || x == w);
  if (as_they_are) return make_if_supported<SixteenBitMatmul>(s);
  return SlabMatmul::fits(s) ? make_if_supported<SlabMatmul>(s) : make_if_supported<CodedMatmul>(s);
}

}  // namespace

extern const CpuKernel cpu_coded_matmul{"coded_matmul", make};

}  // namespace thimble
