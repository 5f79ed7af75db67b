// lstm_cell_backward: one launch for the gradients of the gates, into scratch in the dtype of the
// weights, and cuBLASLt's products with them; a last launch sums the bias's.
#include "backend/cuda/multiply/cublas_product.h"
#include "backend/cuda/pointwise/elementwise.cuh"

namespace thimble {
namespace {

template <class T>
struct Gates {
  const T *c, *gates, *new_c, *dh, *dc;
  T* out;  // the gradient of c
  bool add;
  T* d_gates;
  int64_t batch, hidden;
};

// After it dh' and dc' are not read again: dh and dc may take their bytes.
template <class T>
__global__ void gates_backward(Gates<T> g) {
  const int64_t threads = gridDim.x * int64_t{blockDim.x};
  for (int64_t at = blockIdx.x * int64_t{blockDim.x} + threadIdx.x; at < g.batch * g.hidden;
       at += threads) {
    const int64_t b = at / g.hidden, first = at + 3 * b * g.hidden;  // of gate 0
    float gate[4];
#pragma unroll
    for (int q = 0; q < 4; ++q) gate[q] = widen(g.gates[first + q * g.hidden]);
    const float in = gate[0], forget = gate[1], cell = gate[2], out = gate[3];
    const float squashed = tanhf(widen(g.new_c[at])), dh = widen(g.dh[at]);
    const float dc = widen(g.dc[at]) + dh * out * (1 - squashed * squashed);
    g.d_gates[first] = narrow<T>(dc * cell * in * (1 - in));
    g.d_gates[first + g.hidden] = narrow<T>(dc * widen(g.c[at]) * forget * (1 - forget));
    g.d_gates[first + 2 * g.hidden] = narrow<T>(dc * in * (1 - cell * cell));
    g.d_gates[first + 3 * g.hidden] = narrow<T>(dh * squashed * out * (1 - out));
    store(g.out + at, dc * forget, g.add);
  }
}

// A thread for a column: neighbours read neighbours.
template <class T>
__global__ void sum_rows(const T* x, int64_t rows, int64_t columns, T* out, bool add) {
  const int64_t column = blockIdx.x * int64_t{blockDim.x} + threadIdx.x;
  if (column >= columns) return;
  float sum = 0;
#pragma unroll 8
  for (int64_t r = 0; r < rows; ++r) sum += widen(x[r * columns + column]);
  store(out + column, sum, add);
}

class LstmCellBackward final : public Kernel {
 public:
  LstmCellBackward(const Signature& s, CudaDevice& device)
      : device_(device),
        batch_(s.inputs[0].shape[0]),
        hidden_(s.inputs[1].shape[1]),
        gate_bytes_(align_up(s.inputs[5].bytes())),
        to_h_(product(s, 0, batch_, hidden_, 4 * hidden_, false)),
        to_w_x_(product(s, 2, 4 * hidden_, s.inputs[0].shape[1], batch_, true)),
        to_w_h_(product(s, 3, 4 * hidden_, hidden_, batch_, true)) {
    if (s.outputs.size() > 5) {
      to_x_ = product(s, 5, batch_, s.inputs[0].shape[1], 4 * hidden_, false);
    }
    Bytes scratch = std::max({to_h_->scratch(), to_w_x_->scratch(), to_w_h_->scratch()});
    if (to_x_) scratch = std::max(scratch, to_x_->scratch());
    name = "cublaslt and own";
    workspace = gate_bytes_ + scratch;
  }

  void run(const KernelArgs& args) override {
    with_device_type(args.inputs[0].type.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      const auto in = [&](size_t k) -> const T* { return args.inputs[k].as<T>(); };
      T* const d_gates = reinterpret_cast<T*>(args.workspace);
      std::byte* const scratch = args.workspace + gate_bytes_.count;
      const Gates<T> gates = {
          in(2),   in(5),  in(6),  in(7), in(8), args.outputs[1].as<T>(), args.adds_into(1),
          d_gates, batch_, hidden_};
      gates_backward<<<blocks_for(batch_ * hidden_, device_), kBlockThreads, 0, device_.stream>>>(
          gates);
      to_h_->run(d_gates, in(4), args.outputs[0].data, scratch);
      if (to_x_) to_x_->run(d_gates, in(3), args.outputs[5].data, scratch);
      to_w_x_->run(d_gates, in(0), args.outputs[2].data, scratch);
      to_w_h_->run(d_gates, in(1), args.outputs[3].data, scratch);
      constexpr int kThreads = 64;
      sum_rows<<<static_cast<unsigned>((4 * hidden_ + kThreads - 1) / kThreads), kThreads, 0,
                 device_.stream>>>(d_gates, batch_, 4 * hidden_, args.outputs[4].as<T>(),
                                   args.adds_into(4));
    });
    check_launch("lstm_cell_backward");
  }

 private:
  // Of d_gates [B,4H], or its transpose, and a matrix of `n` columns.
  std::unique_ptr<CublasProduct> product(const Signature& s, size_t output, int64_t m, int64_t n,
                                         int64_t k, bool transposed) const {
    const ProductShape shape = {.batch = 1, .m = m, .n = n, .k = k, .transpose_a = transposed};
    const DType dtype = s.inputs[0].dtype;
    const bool add = ((s.accumulate >> output) & 1u) != 0;
    return std::make_unique<CublasProduct>(device_, shape, dtype, dtype, add,
                                           scratch_limit(shape, dtype));
  }

  CudaDevice& device_;
  const int64_t batch_, hidden_;
  const Bytes gate_bytes_;
  std::unique_ptr<CublasProduct> to_h_, to_w_x_, to_w_h_;
  std::unique_ptr<CublasProduct> to_x_;  // null: not asked for
};

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  if (!on_device(s.inputs[0].dtype) || s.inputs[0].elements() == 0) return nullptr;
  return std::make_unique<LstmCellBackward>(s, device);
}

}  // namespace

extern const CudaKernel cuda_lstm_cell_backward{"lstm_cell_backward", make};

}  // namespace thimble
