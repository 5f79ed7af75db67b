// momentum_decay: one pass.
#include "backend/cuda/update/update.cuh"

namespace thimble {
namespace {

struct Decay {
  static constexpr int kTensors = 2, kOutputs = 1, kRest = 0;
  float momentum, decay;

  __device__ void begin(float, float) {}
  __device__ void operator()(const float (&in)[kTensors], float (&out)[kOutputs]) const {
    out[0] = momentum * in[0] + decay * in[1];
  }
};

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  return make_update(s, device, 0,
                     Decay{static_cast<float>(s.attrs.real("momentum")),
                           static_cast<float>(s.attrs.real("weight_decay", 0))});
}

}  // namespace

extern const CudaKernel cuda_momentum_decay{"momentum_decay", make};

}  // namespace thimble
