// gather_fold_8bit: one launch; see packed_weight.cuh. A block of 256 codes belongs to the thread
// block in whose chunk of the mask its first nonzero lies. That thread block continues behind its
// chunk until its last block of codes is complete. The nonzeros of a tile are gathered in shared
// memory, and a warp adds 256 of them into codes.
#include "backend/cuda/sparse/packed_weight.cuh"
#include "backend/cuda/update/state_blocks.cuh"

namespace thimble {
namespace {

constexpr size_t kOwnInputs = 6;

// The place of the first block of codes that begins at `place` or behind it.
__device__ int64_t next_code_block(int64_t place) {
  return (place + kCodeBlock - 1) / kCodeBlock * kCodeBlock;
}

// Shares of the places [begin, end) of the pool; all others are zero.
struct Shares {
  const float* at;  // of place `base` on, where a block of codes begins
  int64_t base, begin, end;

  __device__ LaneState of(const LanePlace& place) const {
    LaneState result;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const int64_t element = 4 * place.quad(i / 4) + i % 4;
      result.at[i] = begin <= element && element < end ? at[element - base] : 0;
    }
    return result;
  }
};

template <class T>
__global__ void gather_fold(CodedState momentum, int64_t total, const T* dense, PackedWeight weight,
                            const int64_t* rng, int64_t stream, UpdateExtras extras) {
  // As many as a block of codes that is not complete and the next tile have.
  __shared__ float room[kCodeBlock + 32 * kTileWords];
  static_assert(kBlockThreads == kCodeBlock);
  const float factor = extras.gradient_factor();
  if (factor == 0) return;
  const RandomStream random(rng, stream);
  const Chunk chunk = chunk_of_block(weight);
  const int warp = static_cast<int>(threadIdx.x / 32);
  int64_t next = *weight.first + ones_between(weight, 0, chunk.begin);
  const int64_t begin = next == *weight.first ? next : next_code_block(next);
  int64_t end = total;
  Shares shares = {room, begin / kCodeBlock * kCodeBlock, begin, begin};
  for (int64_t tile = chunk.begin; tile < weight.words(); tile += kTileWords) {
    if (tile == chunk.end) end = next_code_block(next);
    if (tile >= chunk.end && (next <= begin || next >= end)) break;
    next += walk_tile(weight, tile, next, [&](int64_t element, bool one, int64_t place) {
      if (one && begin <= place && place < end) {
        room[place - shares.base] = product(factor, widen(dense[element]));
      }
    });
    shares.end = min(next, end);
    const int64_t complete = shares.end > begin ? (shares.end - shares.base) / kCodeBlock : 0;
    __syncthreads();
    for (int64_t k = warp; k < complete; k += kWarps) {
      const LanePlace place = {shares.base / kCodeBlock + k, total};
      fold_into_state(momentum, place, shares.of(place), random);
    }
    __syncthreads();
    if (complete > 0) {
      room[threadIdx.x] = room[complete * kCodeBlock + threadIdx.x];
      shares.base += complete * kCodeBlock;
    }
  }
  __syncthreads();
  if (warp == 0 && shares.end > max(begin, shares.base)) {
    const LanePlace place = {shares.base / kCodeBlock, total};
    fold_into_state(momentum, place, shares.of(place), random);
  }
}

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  if (!on_device(s.inputs[2].dtype)) return nullptr;
  const PackedGrid grid = packed_grid(s.inputs[2].elements(), device);
  const int64_t stream = s.attrs.integer("stream");
  const ExtraInputs extras(s, kOwnInputs);
  return own_kernel([&device, grid, stream, extras](const KernelArgs& args) {
    const CodedState momentum = {args.inputs[0].as<uint8_t>(), args.inputs[1].as<float>(),
                                 args.outputs[0].as<uint8_t>(), args.outputs[1].as<float>()};
    const PackedWeight weight = {args.inputs[4].as<uint8_t>(), args.inputs[3].as<int64_t>(),
                                 args.inputs[2].elements(), grid.tiles_per_block};
    with_device_type(args.inputs[2].type.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      gather_fold<<<grid.blocks, kBlockThreads, 0, device.stream>>>(
          momentum, args.inputs[0].elements(), args.inputs[2].as<T>(), weight,
          args.inputs[5].as<int64_t>(), stream, extras.of(args));
    });
    check_launch("gather_fold_8bit");
  });
}

}  // namespace

extern const CudaKernel cuda_gather_fold_8bit{"gather_fold_8bit", make};

}  // namespace thimble
