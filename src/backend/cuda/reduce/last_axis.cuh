// Kernels that work along the last axis, a warp or a block per row: what softmax and its gradient
// share.
#pragma once

#include "backend/cuda/reduce/row_group.cuh"

namespace thimble {

// The kernel that calls launch(TypeTag<T>{}, kThreads of a row's group as an integral constant,
// blocks of kRowThreads, rows, columns, args) for the rows of the first input.
template <class Launch>
std::unique_ptr<Kernel> make_over_rows(const Signature& s, CudaDevice& device,
                                       const Launch& launch) {
  if (!on_device(s.inputs[0].dtype)) return nullptr;
  return own_kernel([&device, launch](const KernelArgs& args) {
    const Shape& shape = args.inputs[0].type.shape;
    const int64_t columns = shape.back(), rows = shape.product(0, shape.rank() - 1);
    if (rows * columns == 0) return;
    with_device_type(args.inputs[0].type.dtype, [&](auto tag) {
      with_row_group(columns, [&](auto threads) {
        launch(tag, threads, row_blocks(rows, columns, device), rows, static_cast<int>(columns),
               args);
      });
    });
    check_launch("softmax");
  });
}

}  // namespace thimble
