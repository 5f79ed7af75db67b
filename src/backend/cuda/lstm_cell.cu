// lstm_cell: products, gates and state in one launch. A thread has all four gates of its units, so
// that nothing is rounded before it is activated.
#include "backend/cuda/activation.cuh"
#include "backend/cuda/cuda_kernel.h"
#include "backend/cuda/numbers.cuh"
#include "backend/cuda/tile_product.cuh"

namespace thimble {
namespace {

template <class T>
struct Cell {
  const T *x, *h, *c, *w_x, *w_h, *bias;
  T *new_h, *new_c, *gates;
  int batch, inputs, hidden;
};

// Column n of the product is gate n % 4 of unit n / 4; its depth is the inputs and then the state.
template <class T>
__global__ void __launch_bounds__(TileProduct::kThreads) cells(Cell<T> cell) {
  __shared__ TileProduct::Shared shared;
  TileProduct tile;
  const int first_sample = static_cast<int>(blockIdx.y) * TileProduct::kM;
  const int first_column = static_cast<int>(blockIdx.x) * TileProduct::kN;
  const int depth = cell.inputs + cell.hidden;
  tile.multiply(
      shared, depth, true, true,
      [&](int m, int k) -> float {
        const int64_t b = first_sample + m;
        if (b >= cell.batch || k >= depth) return 0;
        return widen(k < cell.inputs ? cell.x[b * cell.inputs + k]
                                     : cell.h[b * cell.hidden + k - cell.inputs]);
      },
      [&](int k, int n) -> float {
        const int column = first_column + n;
        if (column >= 4 * cell.hidden || k >= depth) return 0;
        const int64_t row = int64_t{column % 4} * cell.hidden + column / 4;
        return widen(k < cell.inputs ? cell.w_x[row * cell.inputs + k]
                                     : cell.w_h[row * cell.hidden + k - cell.inputs]);
      });
  const int unit = (first_column + tile.column) / 4;
  if (!tile.has_results() || unit >= cell.hidden) return;
  float bias[4];
#pragma unroll
  for (int q = 0; q < 4; ++q) bias[q] = widen(cell.bias[q * cell.hidden + unit]);
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int64_t b = first_sample + tile.row + i;
    if (b >= cell.batch) return;
    float gate[4];
#pragma unroll
    for (int q = 0; q < 4; ++q) {
      const float z = tile.sum[i][q] + bias[q];
      gate[q] = q == 2 ? tanhf(z) : sigmoid(z);
      cell.gates[(4 * b + q) * cell.hidden + unit] = narrow<T>(gate[q]);
    }
    const int64_t at = b * cell.hidden + unit;
    const float state = gate[1] * widen(cell.c[at]) + gate[0] * gate[2];
    cell.new_c[at] = narrow<T>(state);
    cell.new_h[at] = narrow<T>(gate[3] * tanhf(state));
  }
}

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  if (!on_device(s.inputs[0].dtype)) return nullptr;
  const int batch = static_cast<int>(s.inputs[0].shape[0]);
  const int inputs = static_cast<int>(s.inputs[0].shape[1]);
  const int hidden = static_cast<int>(s.inputs[1].shape[1]);
  const dim3 grid(static_cast<unsigned>((4 * hidden + TileProduct::kN - 1) / TileProduct::kN),
                  static_cast<unsigned>((batch + TileProduct::kM - 1) / TileProduct::kM));
  return own_kernel([&device, batch, inputs, hidden, grid](const KernelArgs& args) {
    if (args.outputs[0].elements() == 0) return;
    with_device_type(args.inputs[0].type.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      const auto in = [&](size_t k) -> const T* { return args.inputs[k].as<T>(); };
      const Cell<T> cell = {in(0), in(1), in(2), in(3), in(4), in(5),
                            args.outputs[0].as<T>(), args.outputs[1].as<T>(),
                            args.outputs[2].as<T>(), batch, inputs, hidden};
      cells<<<grid, TileProduct::kThreads, 0, device.stream>>>(cell);
    });
    check_launch("lstm_cell");
  });
}

}  // namespace

extern const CudaKernel cuda_lstm_cell;
const CudaKernel cuda_lstm_cell{"lstm_cell", make};

}  // namespace thimble
