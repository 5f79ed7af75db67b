// coded_matmul: our own product, whose right factor decodes itself into panels; a 16-bit matrix that
// goes with its other factor is multiplied as matmul does.
#include "backend/cpu/cpu_kernel.h"
#include "backend/cpu/multiply/coded_factor.h"
#include "backend/cpu/multiply/product.h"

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
  const DType x = s.inputs[0].dtype, w = s.inputs[1].dtype;
  const bool as_they_are = is_sixteen_bit(w) && (x == DType::f32 || x == w);
  return as_they_are ? make_if_supported<SixteenBitMatmul>(s) : make_if_supported<CodedMatmul>(s);
}

}  // namespace

extern const CpuKernel cpu_coded_matmul{"coded_matmul", make};

}  // namespace thimble
