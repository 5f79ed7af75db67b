// concat: a launch for up to sixteen inputs, each a row of the grid.
#include "backend/cuda/shape/rows.cuh"

namespace thimble {
namespace {

constexpr size_t kTogether = 16;

// In units; row `n` of the result has part k from begin[k] on.
template <class Unit>
struct Parts {
  const Unit* from[kTogether];
  int64_t length[kTogether];
  int64_t begin[kTogether];
};

template <class Unit>
__global__ void join_rows(Parts<Unit> parts, Unit* to, int64_t whole, int64_t outer) {
  const Unit* const from = parts.from[blockIdx.y];
  const int64_t length = parts.length[blockIdx.y], begin = parts.begin[blockIdx.y];
  const int64_t threads = gridDim.x * int64_t{blockDim.x};
  for (int64_t i = blockIdx.x * int64_t{blockDim.x} + threadIdx.x; i < outer * length;
       i += threads) {
    const int64_t row = quotient(i, length);
    to[row * whole + begin + (i - row * length)] = from[i];
  }
}

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  const Shape& shape = s.outputs[0].shape;
  const auto axis = static_cast<int>(s.attrs.integer("axis"));
  const int64_t outer = shape.product(0, axis);
  if (shape.elements() == 0) return nullptr;
  int64_t unit = 16;
  for (const TensorType& input : s.inputs) {
    unit = std::min(unit, widest_unit(input.bytes().count / outer));
  }
  return own_kernel([&device, outer, unit](const KernelArgs& args) {
    const int64_t whole = args.outputs[0].type.bytes().count / outer / unit;
    with_unit(args.outputs[0].type.dtype, false, unit, [&](auto tag, int64_t size) {
      using Unit = typename decltype(tag)::type;
      int64_t begin = 0;
      for (size_t done = 0; done < args.inputs.size(); done += kTogether) {
        const size_t count = std::min(kTogether, args.inputs.size() - done);
        Parts<Unit> parts = {};
        int64_t longest = 1;
        for (size_t k = 0; k < count; ++k) {
          const TensorRef& input = args.inputs[done + k];
          parts.from[k] = input.as<Unit>();
          parts.length[k] = input.type.bytes().count / outer / size;
          parts.begin[k] = begin;
          begin += parts.length[k];
          longest = std::max(longest, parts.length[k]);
        }
        const dim3 grid(blocks_for(outer * longest, device), static_cast<unsigned>(count));
        join_rows<<<grid, kBlockThreads, 0, device.stream>>>(parts, args.outputs[0].as<Unit>(),
                                                             whole, outer);
      }
    });
    check_launch("concat");
  });
}

}  // namespace

extern const CudaKernel cuda_concat{"concat", make};

}  // namespace thimble
