// embed_backward: a block has some rows of the table and a strip of columns. It looks through all
// tokens, some at a time, lists those of its rows in their order, and adds up what arrived there:
// every sum in one order, without atomics.
#include "backend/cuda/pointwise/elementwise.cuh"
#include "backend/cuda/reduce/columns.cuh"
#include "ops/embed/row_lookup.h"

namespace thimble {
namespace {

struct Table {
  int64_t rows, width, pad;
  int64_t tokens;
  float scale;
  bool add;
};

constexpr int kAtOnce = 4;  // tokens whose loads are in flight together

// A thread sums kWide columns of each of kRows rows.
template <class T, int kWide, int kRows>
__global__ void __launch_bounds__(kBlockThreads)
    sum_rows(const int32_t* tokens, const T* dy, T* table, Table t) {
  __shared__ int32_t found_at[kBlockThreads];
  __shared__ int8_t found_row[kBlockThreads];
  __shared__ int of_warps[kBlockThreads / 32];
  const int64_t first = blockIdx.x * int64_t{kRows};
  const int64_t column = (blockIdx.y * int64_t{kBlockThreads} + threadIdx.x) * kWide;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  float sum[kRows][kWide] = {};
  for (int64_t begin = 0; begin < t.tokens; begin += kBlockThreads) {
    const int64_t at = begin + threadIdx.x;
    const int64_t token = at < t.tokens ? tokens[at] : -1;
    const bool mine = token >= first && token < first + kRows && token < t.rows && token != t.pad;
    const unsigned votes = __ballot_sync(~0u, mine);
    if (lane == 0) of_warps[warp] = __popc(votes);
    // Between the last round's reads of the list and this one's writes, too.
    __syncthreads();
    int before = __popc(votes & ((1u << lane) - 1)), count = 0;
    for (int w = 0; w < kBlockThreads / 32; ++w) {
      if (w < warp) before += of_warps[w];
      count += of_warps[w];
    }
    if (mine) {
      found_at[before] = static_cast<int32_t>(at);
      found_row[before] = static_cast<int8_t>(token - first);
    }
    __syncthreads();
    for (int i = 0; i < count && column < t.width; i += kAtOnce) {
      Vec<T, kWide> in[kAtOnce];
#pragma unroll
      for (int u = 0; u < kAtOnce; ++u) {
        if (i + u >= count) continue;
        in[u] = *reinterpret_cast<const Vec<T, kWide>*>(dy + found_at[i + u] * t.width + column);
      }
#pragma unroll
      for (int u = 0; u < kAtOnce; ++u) {
        if (i + u >= count) continue;
        const int row = found_row[i + u];
#pragma unroll
        for (int r = 0; r < kRows; ++r) {  // the same for all threads
          if (r != row) continue;
#pragma unroll
          for (int e = 0; e < kWide; ++e) sum[r][e] += widen(in[u].at[e]);
        }
      }
    }
    __syncthreads();
  }
  if (column >= t.width) return;
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    if (first + r >= t.rows) break;
    Vec<T, kWide>* const to =
        reinterpret_cast<Vec<T, kWide>*>(table + (first + r) * t.width + column);
    Vec<T, kWide> result{};
    if (t.add) result = *to;
#pragma unroll
    for (int e = 0; e < kWide; ++e) store(&result.at[e], sum[r][e] * t.scale, t.add);
    *to = result;
  }
}

template <int kRows>
void launch(const KernelArgs& args, const Table& t, const CudaDevice& device) {
  with_device_type(args.inputs[1].type.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    with_wide(t.width, [&](auto wide) {
      const int64_t strip = kBlockThreads * int64_t{wide.value};
      const dim3 grid(static_cast<unsigned>((t.rows + kRows - 1) / kRows),
                      static_cast<unsigned>((t.width + strip - 1) / strip));
      sum_rows<T, wide.value, kRows><<<grid, kBlockThreads, 0, device.stream>>>(
          args.inputs[0].as<int32_t>(), args.inputs[1].as<T>(), args.outputs[0].as<T>(), t);
    });
  });
  check_launch("embed_backward");
}

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  const bool fits = on_device(s.inputs[1].dtype) && s.outputs[0].elements() > 0 &&
                    s.inputs[0].elements() <= INT32_MAX;
  if (!fits) return nullptr;
  const RowLookup lookup(s.outputs[0].shape[0], s.outputs[0].shape[1], s.attrs);
  const Table table = {lookup.rows,
                       lookup.width,
                       lookup.pad,
                       s.inputs[0].elements(),
                       static_cast<float>(lookup.scale),
                       (s.accumulate & 1u) != 0};
  // Of a large table every block takes several rows, since each looks through all tokens.
  const bool large = lookup.rows > int64_t{device.multiprocessors} * 16;
  return own_kernel([&device, table, large](const KernelArgs& args) {
    if (large) {
      launch<8>(args, table, device);
    } else {
      launch<1>(args, table, device);
    }
  });
}

}  // namespace

extern const CudaKernel cuda_embed_backward{"embed_backward", make};

}  // namespace thimble
