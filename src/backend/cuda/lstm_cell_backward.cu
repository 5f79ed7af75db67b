// lstm_cell_backward: the gradients of the gates, and then all products with them in one launch.
#include "backend/cuda/elementwise.cuh"
#include "backend/cuda/tile_product.cuh"

namespace thimble {
namespace {

template <class T>
struct Gates {
  const T *c, *gates, *new_c, *dh, *dc;
  T* out;  // the gradient of c
  bool add;
  float* d_gates;
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
    g.d_gates[first] = dc * cell * in * (1 - in);
    g.d_gates[first + g.hidden] = dc * widen(g.c[at]) * forget * (1 - forget);
    g.d_gates[first + 2 * g.hidden] = dc * in * (1 - cell * cell);
    g.d_gates[first + 3 * g.hidden] = dh * squashed * out * (1 - out);
    store(g.out + at, dc * forget, g.add);
  }
}

// out [m,n] = left [m,depth] right [depth,n]: left is d_gates or its transpose, right row-major.
template <class T>
struct Product {
  int m, n, depth;
  bool transposed;
  const T* right;  // null: ones
  T* out;
  bool add;

  __host__ __device__ int tiles_across() const {
    return (n + TileProduct::kN - 1) / TileProduct::kN;
  }
  __host__ __device__ int tiles() const {
    return (m + TileProduct::kM - 1) / TileProduct::kM * tiles_across();
  }
};

template <class T>
struct Products {
  static constexpr int kMost = 5;
  Product<T> at[kMost];
  int count = 0;
};

template <class T>
__global__ void __launch_bounds__(TileProduct::kThreads)
    products(const float* d_gates, int gate_rows, Products<T> all) {
  __shared__ TileProduct::Shared shared;
  int own = static_cast<int>(blockIdx.x), which = 0;
  while (own >= all.at[which].tiles()) own -= all.at[which++].tiles();
  const Product<T> p = all.at[which];
  const int first_row = own / p.tiles_across() * TileProduct::kM;
  const int first_column = own % p.tiles_across() * TileProduct::kN;
  TileProduct tile;
  tile.multiply(
      shared, p.depth, !p.transposed, false,
      [&](int m, int k) -> float {
        if (first_row + m >= p.m || k >= p.depth) return 0;
        return p.transposed ? d_gates[int64_t{k} * gate_rows + first_row + m]
                            : d_gates[int64_t{first_row + m} * gate_rows + k];
      },
      [&](int k, int n) -> float {
        if (first_column + n >= p.n || k >= p.depth) return 0;
        return p.right == nullptr ? 1 : widen(p.right[int64_t{k} * p.n + first_column + n]);
      });
  if (!tile.has_results()) return;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int row = first_row + tile.row + i;
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const int column = first_column + tile.column + j;
      if (row < p.m && column < p.n) {
        store(p.out + int64_t{row} * p.n + column, tile.sum[i][j], p.add);
      }
    }
  }
}

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  if (!on_device(s.inputs[0].dtype) || s.inputs[0].elements() == 0) return nullptr;
  const int batch = static_cast<int>(s.inputs[0].shape[0]);
  const int inputs = static_cast<int>(s.inputs[0].shape[1]);
  const int hidden = static_cast<int>(s.inputs[1].shape[1]);
  const auto launch = [&device, batch, inputs, hidden](const KernelArgs& args) {
    float* const d_gates = reinterpret_cast<float*>(args.workspace);
    with_device_type(args.inputs[0].type.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      const auto in = [&](size_t k) -> const T* { return args.inputs[k].as<T>(); };
      const Gates<T> gates = {in(2), in(5), in(6), in(7), in(8), args.outputs[1].as<T>(),
                              args.adds_into(1), d_gates, batch, hidden};
      gates_backward<<<blocks_for(int64_t{batch} * hidden, device), kBlockThreads, 0,
                       device.stream>>>(gates);
      Products<T> all;
      int tiles = 0;
      const auto add = [&](size_t output, bool to_weights, const T* right, int width) {
        all.at[all.count] = {to_weights ? 4 * hidden : batch, width,
                             to_weights ? batch : 4 * hidden, to_weights, right,
                             args.outputs[output].as<T>(), args.adds_into(output)};
        tiles += all.at[all.count++].tiles();
      };
      add(0, false, in(4), hidden);
      if (args.outputs.size() > 5) add(5, false, in(3), inputs);
      add(2, true, in(0), inputs);
      add(3, true, in(1), hidden);
      add(4, true, nullptr, 1);
      products<<<static_cast<unsigned>(tiles), TileProduct::kThreads, 0, device.stream>>>(
          d_gates, 4 * hidden, all);
    });
    check_launch("lstm_cell_backward");
  };
  return own_kernel(launch, Bytes(int64_t{batch} * 4 * hidden * int64_t{sizeof(float)}));
}

}  // namespace

extern const CudaKernel cuda_lstm_cell_backward;
const CudaKernel cuda_lstm_cell_backward{"lstm_cell_backward", make};

}  // namespace thimble
