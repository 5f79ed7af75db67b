// matmul: transposes are strides; one matrix for a whole batch is one product of all rows. 16-bit
// matrices go through the workspace: b whole, the rows of a and y in slices.
#include "backend/cpu/cpu_kernel.h"
#include "backend/cpu/multiply/product.h"
#include "backend/cpu/sixteen_bit.h"
#include "backend/matmul_shape.h"

namespace thimble {
namespace {

DnnlProductShape product_shape(const Signature& s) {
  auto shape = matmul_shape<DnnlProductShape>(s);
  shape.add = s.accumulate != 0;
  return shape;
}

class Matmul final : public Kernel {
 public:
  explicit Matmul(const Signature& s) : product_(product_shape(s)) {
    name = product_.name();
    workspace = Bytes(static_cast<int64_t>(product_.scratch_bytes()));
  }
  void run(const KernelArgs& args) override {
    product_.run(args.inputs[0].data, args.inputs[1].data, args.outputs[0].data, args.workspace);
  }

 private:
  Product product_;
};

// The most of `items` that divide them and take about 128 KiB at `floats` each.
int64_t slice_of(int64_t items, int64_t floats) {
  int64_t slice = std::clamp<int64_t>((32 << 10) / std::max<int64_t>(floats, 1), 1, items);
  while (items % slice != 0) --slice;
  return slice;
}

// One product after the other, each in slices: along the rows of a and y where a is stored by rows,
// else (weight gradients: the rows of both factors are the batch) along k, adding up in f32.
class StagedMatmul final : public Kernel {
 public:
  explicit StagedMatmul(const Signature& s) : all_(product_shape(s)) {
    DnnlProductShape part = all_;
    part.batch = 1;
    along_k_ = all_.transpose_a && !all_.transpose_b;
    const bool along_m = !all_.transpose_a;
    slice_ = along_k_  ? slice_of(all_.k, all_.m + all_.n)
             : along_m ? slice_of(all_.m, all_.k + all_.n)
                       : all_.m;
    (along_k_ ? part.k : part.m) = slice_;
    WorkspaceParts parts;
    a_ = take(parts, part.m * part.k);
    b_ = take(parts, part.k * part.n);
    y_ = take(parts, part.m * part.n);
    part.add = all_.add;
    first_ = Product(part);
    part.add = true;
    if (along_k_ && slice_ < all_.k) next_ = Product(part);
    scratch_ = parts.take(std::max(first_.scratch_bytes(), next_.scratch_bytes()));
    name = first_.name() + ", staged";
    workspace = parts.total();
  }

  void run(const KernelArgs& args) override {
    for (int64_t p = 0; p < all_.batch; ++p) {
      along_k_ ? sum_over_k(args, p) : slice_rows(args, p);
    }
  }

 private:
  static int64_t take(WorkspaceParts& parts, int64_t floats) {
    return parts.take(static_cast<size_t>(floats) * sizeof(float));
  }
  static float* room(const KernelArgs& args, int64_t at) {
    return reinterpret_cast<float*>(args.workspace + at);
  }

  void slice_rows(const KernelArgs& args, int64_t p) {
    const int64_t b_size = all_.k * all_.n, a_size = slice_ * all_.k, y_size = slice_ * all_.n;
    float *a = room(args, a_), *b = room(args, b_), *y = room(args, y_);
    widen(args.inputs[1], p * b_size, b_size, b);
    for (int64_t m = 0; m < all_.m; m += slice_) {
      const int64_t y_first = (p * all_.m + m) * all_.n;
      widen(args.inputs[0], (p * all_.m + m) * all_.k, a_size, a);
      if (all_.add) widen(args.outputs[0], y_first, y_size, y);
      first_.run(a, b, y, args.workspace + scratch_);
      narrow(y, args.outputs[0], y_first, y_size);
    }
  }

  void sum_over_k(const KernelArgs& args, int64_t p) {
    const int64_t y_size = all_.m * all_.n;
    float *a = room(args, a_), *b = room(args, b_), *y = room(args, y_);
    if (all_.add) widen(args.outputs[0], p * y_size, y_size, y);
    for (int64_t k = 0; k < all_.k; k += slice_) {
      widen(args.inputs[0], (p * all_.k + k) * all_.m, slice_ * all_.m, a);
      widen(args.inputs[1], (p * all_.k + k) * all_.n, slice_ * all_.n, b);
      (k == 0 ? first_ : next_).run(a, b, y, args.workspace + scratch_);
    }
    narrow(y, args.outputs[0], p * y_size, y_size);
  }

  const DnnlProductShape all_;
  bool along_k_ = false;
  int64_t slice_ = 1;
  Product first_, next_;
  int64_t a_ = 0, b_ = 0, y_ = 0, scratch_ = 0;
};

std::unique_ptr<Kernel> make(const Signature& s) {
  if (!one_stageable_type(s)) return nullptr;
  return all_f32(s) ? make_if_supported<Matmul>(s) : make_if_supported<StagedMatmul>(s);
}

}  // namespace

extern const CpuKernel cpu_matmul{"matmul", make};

}  // namespace thimble
