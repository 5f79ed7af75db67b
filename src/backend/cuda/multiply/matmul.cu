// matmul with cuBLASLt. One matrix for a whole batch is one product of all rows. Long sums are cut
// into parts (split-K). An addend is first copied to the result, or added to it, and the product
// adds to that.
#include "backend/cuda/multiply/long_product.h"
#include "backend/cuda/pointwise/elementwise.cuh"
#include "backend/matmul_shape.h"

namespace thimble {
namespace {

struct Same {
  __device__ float operator()(float x) const { return x; }
};

class Matmul final : public Kernel {
 public:
  Matmul(const ProductShape& shape, DType dtype, bool add, CudaDevice& device)
      : device_(device), product_(device, shape, dtype, add) {
    name = product_.name();
    workspace = product_.scratch();
  }
  void run(const KernelArgs& args) override {
    const TensorRef& y = args.outputs[0];
    if (args.inputs.size() > 2 && args.adds_into(0)) {
      KernelArgs sum = args;
      sum.inputs = args.inputs.subspan(2);
      run_elementwise<1>(sum, device_, Same{});
    } else if (args.inputs.size() > 2 && args.inputs[2].data != y.data) {
      check(cudaMemcpyAsync(y.data, args.inputs[2].data, static_cast<size_t>(y.type.bytes().count),
                            cudaMemcpyDeviceToDevice, device_.stream),
            "copying what a product adds to");
    }
    product_.run(args.inputs[0].data, args.inputs[1].data, args.outputs[0].data, args.workspace);
  }

 private:
  CudaDevice& device_;
  LongProduct product_;
};

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  const DType dtype = s.outputs[0].dtype;
  const bool fits = on_device(dtype) && s.inputs[0].dtype == dtype && s.inputs[1].dtype == dtype;
  const bool added = s.inputs.size() > 2;
  if (!fits) return nullptr;
  return std::make_unique<Matmul>(matmul_shape<ProductShape>(s), dtype, added || s.accumulate != 0,
                                  device);
}

}  // namespace

extern const CudaKernel cuda_matmul{"matmul", make};

}  // namespace thimble
