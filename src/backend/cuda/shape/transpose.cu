// transpose: one launch. Where the innermost axis stays, rows move in wide units; where it does
// not, square tiles go through shared memory, so that both sides are met in their order.
#include "backend/cuda/shape/rows.cuh"
#include "backend/cuda/shape/strided.cuh"

namespace thimble {
namespace {

template <class Unit>
__global__ void move_strided(const Unit* from, Unit* to, Strided<1> shape, bool add) {
  const uint32_t threads = gridDim.x * blockDim.x;
  for (uint64_t p = blockIdx.x * blockDim.x + threadIdx.x; p < shape.packs; p += threads) {
    int64_t at[1];
    shape.locate(static_cast<uint32_t>(p), at);
    put(to + p, from[at[0]], add);
  }
}

constexpr int kTile = 32;

// Axis `a` has neighbours in the argument, axis `b` in the result; `rest` are the others, with
// strides in the argument (0) and in the result (1).
struct Tiles {
  int64_t a_extent, b_extent, a_tiles, b_tiles;
  int64_t a_to, b_from;  // strides on the side where they have no neighbours
  Strided<2> rest;
};

template <class Unit>
__global__ void move_tiles(const Unit* from, Unit* to, Tiles tiles, bool add) {
  __shared__ Unit tile[kTile][kTile + 1];
  const int64_t pair = blockIdx.x % (tiles.a_tiles * tiles.b_tiles);
  int64_t at[2];
  tiles.rest.locate(static_cast<uint32_t>(blockIdx.x / (tiles.a_tiles * tiles.b_tiles)), at);
  const int64_t a = pair % tiles.a_tiles * kTile, b = pair / tiles.a_tiles * kTile;
  const int column = threadIdx.x % kTile;
  for (int row = threadIdx.x / kTile; row < kTile; row += kBlockThreads / kTile) {
    if (a + column < tiles.a_extent && b + row < tiles.b_extent) {
      tile[row][column] = from[at[0] + (b + row) * tiles.b_from + a + column];
    }
  }
  __syncthreads();
  for (int row = threadIdx.x / kTile; row < kTile; row += kBlockThreads / kTile) {
    if (a + row < tiles.a_extent && b + column < tiles.b_extent) {
      put(to + at[1] + (a + row) * tiles.a_to + b + column, tile[column][row], add);
    }
  }
}

// Tensor 0 is the argument, tensor 1 the result, in elements of `size` of the tensors' own.
StridedAxes<2> axes_of(const Signature& s) {
  const std::vector<int64_t>& perm = s.attrs.integers("perm");
  const Shape &x = s.inputs[0].shape, &y = s.outputs[0].shape;
  StridedAxes<2> axes;
  for (int axis = 0; axis < y.rank(); ++axis) {
    const auto source = static_cast<int>(perm[static_cast<size_t>(axis)]);
    axes.add(y[axis], {x.product(source + 1, x.rank()), y.product(axis + 1, y.rank())});
  }
  return axes;
}

// Rows whose elements are neighbours on both sides, in units of `unit` elements.
Strided<1> in_units(const StridedAxes<2>& axes, int64_t unit) {
  StridedAxes<1> wide;
  for (int axis = 0; axis < axes.rank(); ++axis) {
    const bool inner = axis == axes.rank() - 1;
    wide.add(axes.extent(axis) / (inner ? unit : 1), {axes.stride(0, axis) / (inner ? 1 : unit)});
  }
  return wide.geometry(1);
}

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  if (!can_move(s)) return nullptr;
  const StridedAxes<2> axes = axes_of(s);
  const bool add = (s.accumulate & 1u) != 0;
  const int64_t size = size_of(s.outputs[0].dtype);
  const int inner = axes.rank() - 1;
  int neighbour = inner;  // the axis with neighbours in the argument
  for (int axis = 0; axis < axes.rank(); ++axis) {
    if (axes.stride(0, axis) == 1) neighbour = axis;
  }
  if (neighbour != inner && axes.extent(neighbour) >= 8 && axes.extent(inner) >= 8) {
    StridedAxes<2> rest;
    for (int axis = 0; axis < axes.rank(); ++axis) {
      if (axis != neighbour && axis != inner) {
        rest.add(axes.extent(axis), {axes.stride(0, axis), axes.stride(1, axis)});
      }
    }
    const auto tiles_in = [](int64_t extent) { return (extent + kTile - 1) / kTile; };
    Tiles tiles = {axes.extent(neighbour), axes.extent(inner), 0, 0, axes.stride(1, neighbour),
                   axes.stride(0, inner),  rest.geometry(1)};
    tiles.a_tiles = tiles_in(tiles.a_extent);
    tiles.b_tiles = tiles_in(tiles.b_extent);
    const int64_t blocks = tiles.a_tiles * tiles.b_tiles * tiles.rest.packs;
    if (blocks == 0 || blocks >= int64_t{1} << 31) return nullptr;
    return own_kernel([&device, tiles, add, size, blocks](const KernelArgs& args) {
      with_unit(args.outputs[0].type.dtype, add, size, [&](auto tag, int64_t) {
        using Unit = typename decltype(tag)::type;
        move_tiles<<<static_cast<unsigned>(blocks), kBlockThreads, 0, device.stream>>>(
            args.inputs[0].as<Unit>(), args.outputs[0].as<Unit>(), tiles, add);
      });
      check_launch("transpose");
    });
  }
  int64_t unit = size;  // bytes
  if (inner >= 0 && neighbour == inner && axes.stride(0, inner) == 1) {
    unit = widest_unit(axes.extent(inner) * size);
    for (int axis = 0; axis < inner; ++axis) {
      unit = std::min(unit, widest_unit(axes.stride(0, axis) * size));
    }
    if (add && unit < 16) unit = size;
  }
  const Strided<1> shape = in_units(axes, unit / size);
  if (shape.packs == 0) return nullptr;
  return own_kernel([&device, shape, add, unit](const KernelArgs& args) {
    with_unit(args.outputs[0].type.dtype, add, unit, [&](auto tag, int64_t) {
      using Unit = typename decltype(tag)::type;
      move_strided<<<blocks_for(shape.packs, device), kBlockThreads, 0, device.stream>>>(
          args.inputs[0].as<Unit>(), args.outputs[0].as<Unit>(), shape, add);
    });
    check_launch("transpose");
  });
}

}  // namespace

extern const CudaKernel cuda_transpose{"transpose", make};

}  // namespace thimble
