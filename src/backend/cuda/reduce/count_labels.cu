// count_labels: one pass.
#include "backend/cuda/reduce/scalar_sums.cuh"

namespace thimble {
namespace {

__global__ void count(const int32_t* labels, int64_t elements, int64_t ignored, double* partial,
                      ScalarOutput out) {
  double own = 0;
  const int64_t threads = gridDim.x * int64_t{blockDim.x};
  for (int64_t i = blockIdx.x * int64_t{blockDim.x} + threadIdx.x; i < elements; i += threads) {
    own += labels[i] != ignored ? 1 : 0;
  }
  finish_block(own, partial, out);
}

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  const int64_t elements = s.inputs[0].elements(), ignored = s.attrs.integer("ignore_index", -1);
  const unsigned blocks = blocks_for(elements, device);
  const auto launch = [&device, elements, ignored, blocks](const KernelArgs& args) {
    const ScalarOutput out{args.outputs[0].as<float>(), args.adds_into(0), nullptr};
    double* const partial = reinterpret_cast<double*>(args.workspace);
    count<<<blocks, kBlockThreads, 0, device.stream>>>(args.inputs[0].as<int32_t>(), elements,
                                                       ignored, partial, out);
    launch_add_partial_sums(partial, blocks, out, device);
    check_launch("count_labels");
  };
  return own_kernel(launch, scalar_scratch(blocks));
}

}  // namespace

extern const CudaKernel cuda_count_labels{"count_labels", make};

}  // namespace thimble
