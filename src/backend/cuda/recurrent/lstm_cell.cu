// lstm_cell: two products of cuBLASLt's into scratch, in f32 so that nothing is rounded before it
// is activated, and one launch for gates and state.
#include "backend/cuda/multiply/cublas_product.h"
#include "backend/cuda/pointwise/activation.cuh"
#include "backend/cuda/pointwise/elementwise.cuh"

namespace thimble {
namespace {

template <class T>
struct Cell {
  const float* z;  // [B,4H]
  const T *c, *bias;
  T *new_h, *new_c, *gates;
  int64_t batch, hidden;
};

template <class T>
__global__ void activate(Cell<T> cell) {
  const int64_t threads = gridDim.x * int64_t{blockDim.x};
  for (int64_t at = blockIdx.x * int64_t{blockDim.x} + threadIdx.x; at < cell.batch * cell.hidden;
       at += threads) {
    const int64_t b = at / cell.hidden, unit = at % cell.hidden;
    float gate[4];
#pragma unroll
    for (int q = 0; q < 4; ++q) {
      const int64_t place = (4 * b + q) * cell.hidden + unit;
      const float z = cell.z[place] + widen(cell.bias[q * cell.hidden + unit]);
      gate[q] = q == 2 ? tanhf(z) : sigmoid(z);
      cell.gates[place] = narrow<T>(gate[q]);
    }
    const float state = gate[1] * widen(cell.c[at]) + gate[0] * gate[2];
    cell.new_c[at] = narrow<T>(state);
    cell.new_h[at] = narrow<T>(gate[3] * tanhf(state));
  }
}

class LstmCell final : public Kernel {
 public:
  LstmCell(int64_t batch, int64_t inputs, int64_t hidden, DType dtype, CudaDevice& device)
      : device_(device),
        batch_(batch),
        hidden_(hidden),
        z_bytes_(align_up(Bytes(batch * 4 * hidden * int64_t{sizeof(float)}))),
        from_x_(device, shape(batch, inputs, hidden), dtype, DType::f32, false,
                scratch_limit(shape(batch, inputs, hidden), dtype)),
        from_h_(device, shape(batch, hidden, hidden), dtype, DType::f32, true,
                scratch_limit(shape(batch, hidden, hidden), dtype)) {
    name = "cublaslt and own";
    workspace = z_bytes_ + std::max(from_x_.scratch(), from_h_.scratch());
  }

  void run(const KernelArgs& args) override {
    auto* const z = reinterpret_cast<float*>(args.workspace);
    std::byte* const scratch = args.workspace + z_bytes_.count;
    from_x_.run(args.inputs[0].data, args.inputs[3].data, z, scratch);
    from_h_.run(args.inputs[1].data, args.inputs[4].data, z, scratch);
    with_device_type(args.inputs[0].type.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      const Cell<T> cell = {z,
                            args.inputs[2].as<T>(),
                            args.inputs[5].as<T>(),
                            args.outputs[0].as<T>(),
                            args.outputs[1].as<T>(),
                            args.outputs[2].as<T>(),
                            batch_,
                            hidden_};
      activate<<<blocks_for(batch_ * hidden_, device_), kBlockThreads, 0, device_.stream>>>(cell);
    });
    check_launch("lstm_cell");
  }

 private:
  static ProductShape shape(int64_t batch, int64_t depth, int64_t hidden) {
    return {.batch = 1, .m = batch, .n = 4 * hidden, .k = depth, .transpose_b = true};
  }

  CudaDevice& device_;
  const int64_t batch_, hidden_;
  const Bytes z_bytes_;
  const CublasProduct from_x_, from_h_;
};

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  const DType dtype = s.inputs[0].dtype;
  if (!on_device(dtype) || s.inputs[0].elements() == 0) return nullptr;
  return std::make_unique<LstmCell>(s.inputs[0].shape[0], s.inputs[0].shape[1],
                                    s.inputs[1].shape[1], dtype, device);
}

}  // namespace

extern const CudaKernel cuda_lstm_cell{"lstm_cell", make};

}  // namespace thimble
