// matmul: cuBLASLt; one matrix for a whole batch is one product of all rows; long sums in parts.
#include "backend/cuda/cuda_kernel.h"
#include "backend/cuda/multiply/long_product.h"
#include "backend/cuda/numbers.h"
#include "backend/matmul_shape.h"

namespace thimble {
namespace {

class Matmul final : public Kernel {
 public:
  Matmul(const ProductShape& shape, DType dtype, bool add, CudaDevice& device)
      : product_(device, shape, dtype, add) {
    name = product_.name();
    workspace = product_.scratch();
  }
  void run(const KernelArgs& args) override {
    product_.run(args.inputs[0].data, args.inputs[1].data, args.outputs[0].data, args.workspace);
  }

 private:
  LongProduct product_;
};

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  const DType dtype = s.outputs[0].dtype;
  const bool fits = on_device(dtype) && s.inputs[0].dtype == dtype && s.inputs[1].dtype == dtype;
  if (!fits) return nullptr;
  return std::make_unique<Matmul>(matmul_shape<ProductShape>(s), dtype, s.accumulate != 0, device);
}

}  // namespace

extern const CudaKernel cuda_matmul{"matmul", make};

}  // namespace thimble
