// Kernels that treat every image [H, W, C] as a table of its own, with a column per channel: what
// global pooling and its gradient share.
#pragma once

#include "backend/cuda/cuda_kernel.h"
#include "backend/cuda/reduce/columns.cuh"

namespace thimble {

constexpr int kImageThreads = 128;

// The kernel that calls launch(TypeTag<T>{}, kWide as an integral constant, tiles, grid, args), a
// grid of kImageThreads each. `images` is the argument that holds them.
template <class Launch>
std::unique_ptr<Kernel> make_over_images(const TensorType& images, const Launch& launch) {
  if (!on_device(images.dtype)) return nullptr;
  ColumnTiles tiles =
      column_tiles(images.shape[1] * images.shape[2], images.shape[3], images.dtype);
  tiles.threads = kImageThreads;
  const dim3 grid = tiles.grid(images.shape[0]);
  return own_kernel([tiles, grid, launch](const KernelArgs& args) {
    if (args.outputs[0].elements() == 0) return;
    with_device_type(args.inputs[0].type.dtype, [&](auto tag) {
      with_wide(tiles.columns, [&](auto wide) { launch(tag, wide, tiles, grid, args); });
    });
    check_launch("global pooling");
  });
}

}  // namespace thimble
