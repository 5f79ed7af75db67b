// attention: on tensor cores, where the head's size suits them; else a warp per query.
#include "backend/cuda/attend/tensor_attention.cuh"

namespace thimble {
namespace {

void attend_plainly(const AttentionGeometry& g, const KernelArgs& args, CudaDevice& device) {
  with_device_type(args.inputs[0].type.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    with_plain_channels(g.size, [&](auto channels) {
      attend_rows<T, channels.value>
          <<<plain_blocks(g.rows * g.heads * g.queries), kPlainThreads, plain_shared(g, 1),
             device.stream>>>(AttentionCall<T>(g, args, args.inputs.subspan(g.sources())),
                              args.outputs[0].as<T>(), args.outputs[1].as<float>());
    });
  });
  check_launch("attention");
}

template <class T, int kSize, bool kDrop>
void attend_in_tiles(const AttentionGeometry& g, const KernelArgs& args, CudaDevice& device) {
  attend_tiles<T, kSize, kDrop><<<tensor_grid(g.heads, g.rows, g.queries, kQueryTile<kSize>),
                                  kTensorThreads, attend_shared_bytes<kSize, T>(), device.stream>>>(
      AttentionCall<T>(g, args, args.inputs.subspan(g.sources())), args.outputs[0].as<T>(),
      args.outputs[1].as<float>());
  check_launch("attention");
}

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  const AttentionGeometry g = attention_geometry("attention", s.inputs, s.attrs);
  return make_attention(
      g, s.inputs[0].dtype, device, {}, {},
      [&device, g](const KernelArgs& args) { attend_plainly(g, args, device); },
      [&device, g](auto tag, auto size, auto drop) {
        using T = typename decltype(tag)::type;
        std::function<void(const KernelArgs&)> run;
        if (allow_shared(attend_tiles<T, size.value, drop.value>,
                         attend_shared_bytes<size.value, T>())) {
          run = [&device, g](const KernelArgs& args) {
            attend_in_tiles<T, decltype(size)::value, decltype(drop)::value>(g, args, device);
          };
        }
        return run;
      });
}

}  // namespace

extern const CudaKernel cuda_attention{"attention", make};

}  // namespace thimble
