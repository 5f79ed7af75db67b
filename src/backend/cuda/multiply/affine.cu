// affine: cuBLASLt adds the bias, and the addend, to its sums; where it has no such product, a pass
// behind it adds the bias.
#include "backend/cuda/cuda_kernel.h"
#include "backend/cuda/multiply/cublas_product.h"
#include "backend/cuda/pointwise/bias.cuh"

namespace thimble {
namespace {

class Affine final : public Kernel {
 public:
  Affine(const Signature& s, CudaDevice& device)
      : device_(device), product_(make_product(s, device, true)) {
    inside_ = product_->guesses() > 0;
    if (!inside_) product_ = make_product(s, device, false);
    name = inside_ ? "cublaslt" : "cublaslt, and own";
    workspace = product_->scratch();
  }

  void run(const KernelArgs& args) override {
    const TensorRef &y = args.outputs[0], &bias = args.inputs[2];
    if (y.elements() == 0) return;
    product_->run(args.inputs[0].data, args.inputs[1].data, inside_ ? bias.data : nullptr,
                  args.inputs.size() > 3 ? args.inputs[3].data : y.data, y.data, args.workspace);
    if (inside_) return;
    with_device_type(y.type.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      const AddBias<T, NoActivation> map{bias.as<T>(), {}};
      const int64_t columns = y.type.shape.back();
      launch_map_columns(y.as<T>(), y.as<T>(),
                         map_tiles(y.elements() / columns, columns, y.type.dtype, device_), map,
                         device_);
    });
    check_launch("affine");
  }

 private:
  static std::unique_ptr<CublasProduct> make_product(const Signature& s, CudaDevice& device,
                                                     bool bias) {
    const Shape &x = s.inputs[0].shape, &w = s.inputs[1].shape;
    const DType dtype = s.outputs[0].dtype;
    const ProductShape shape = {
        .m = x.product(0, x.rank() - 1), .n = w[0], .k = w[1], .transpose_b = true, .bias = bias};
    return std::make_unique<CublasProduct>(device, shape, dtype, dtype, s.inputs.size() > 3,
                                           scratch_limit(shape, dtype));
  }

  CudaDevice& device_;
  std::unique_ptr<CublasProduct> product_;
  bool inside_ = false;
};

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  if (!on_device(s.outputs[0].dtype)) return nullptr;
  return std::make_unique<Affine>(s, device);
}

}  // namespace

extern const CudaKernel cuda_affine{"affine", make};

}  // namespace thimble
