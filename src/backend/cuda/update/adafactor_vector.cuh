// adafactor_update of vectors: two launches; the first leaves the sums of u^2.
#pragma once

#include "backend/cuda/update/adafactor.cuh"

namespace thimble {
namespace {

__global__ void average_vector(Numbers g, Numbers v, Numbers next_v, int64_t count,
                               AdafactorStep adafactor, double* parts) {
  const float factor = adafactor.extras.gradient_factor();
  if (factor == 0) return;
  const float taken = adafactor.take();
  const int64_t quads = (count + 3) / 4;
  const int64_t threads = gridDim.x * int64_t{blockDim.x};
  float squares = 0;
  for (int64_t q = blockIdx.x * int64_t{blockDim.x} + threadIdx.x; q < quads; q += threads) {
    const int valid = valid_in(q, count);
    const Quad x = load_gradient(g, q, valid, factor);
    Quad moment = widen(load_bits(v, q, valid), v.dtype);
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      if (e >= valid) continue;
      const float square = x.at[e] * x.at[e] + adafactor.epsilon;
      moment.at[e] = adafactor.averaged(moment.at[e], square, taken);
      const float u = x.at[e] / sqrtf(moment.at[e]);
      squares += u * u;
    }
    store_quad(next_v, q, moment, valid);
  }
  const double total = block_total<kBlockThreads>(static_cast<double>(squares));
  if (threadIdx.x == 0) parts[blockIdx.x] = total;
}

__global__ void move_vector(Numbers w, Numbers g, Numbers v, Numbers next_w, int64_t count,
                            AdafactorStep adafactor, const double* parts) {
  const float factor = adafactor.extras.gradient_factor();
  if (factor == 0) return;
  const UpdateRounding rounding = adafactor.extras.rounding();
  const float along = adafactor.length(parts, gridDim.x, count);
  const int64_t quads = (count + 3) / 4;
  const int64_t threads = gridDim.x * int64_t{blockDim.x};
  for (int64_t q = blockIdx.x * int64_t{blockDim.x} + threadIdx.x; q < quads; q += threads) {
    const int valid = valid_in(q, count);
    const Quad x = load_gradient(g, q, valid, factor);
    const Quad moment = widen(load_bits(v, q, valid), v.dtype);
    adafactor.move_quad(w, q, valid, along, rounding, next_w,
                        [&](int e) { return x.at[e] / sqrtf(moment.at[e]); });
  }
}

std::unique_ptr<Kernel> make_adafactor_vector(const Signature& s, CudaDevice& device) {
  if (!on_device(s.inputs[0].dtype) || !on_device(s.inputs[1].dtype)) return nullptr;
  const ExtraInputs extras(s, 5);
  const unsigned blocks = adafactor_blocks(s.inputs[0].elements(), device);
  const AdafactorStep settings(s.attrs);
  return own_kernel(
      [&device, blocks, settings, extras](const KernelArgs& args) {
        const int64_t count = args.inputs[0].elements();
        if (count == 0) return;
        AdafactorStep adafactor = settings;
        adafactor.lr = args.inputs[3].as<float>();
        adafactor.step = args.inputs[4].as<float>();
        adafactor.extras = extras.of(args);
        auto* const parts = reinterpret_cast<double*>(args.workspace);
        const Numbers w = numbers_of(args.inputs[0]), g = numbers_of(args.inputs[1]);
        const Numbers next_v = numbers_of(args.outputs[1]);
        average_vector<<<blocks, kBlockThreads, 0, device.stream>>>(
            g, numbers_of(args.inputs[2]), next_v, count, adafactor, parts);
        move_vector<<<blocks, kBlockThreads, 0, device.stream>>>(
            w, g, next_v, numbers_of(args.outputs[0]), count, adafactor, parts);
        check_launch("adafactor_update");
      },
      adafactor_workspace(blocks));
}

}  // namespace
}  // namespace thimble
