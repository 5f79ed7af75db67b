// attention_backward: on tensor cores, where the head's size suits them; else a warp per
// query, then per key.
#include "backend/cuda/attend/tensor_attention_backward.cuh"

namespace thimble {
namespace {

void gradients_plainly(const AttentionGeometry& g, const KernelArgs& args, CudaDevice& device) {
  with_device_type(args.inputs[0].type.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const AttentionCall<T> call(g, args, args.inputs.subspan(g.sources() + 3));
    const AttentionGradients<T> d(g, args);
    with_plain_channels(g.size, [&](auto channels) {
      query_row_gradients<T, channels.value>
          <<<plain_blocks(g.rows * g.heads * g.queries), kPlainThreads, plain_shared(g, 2),
             device.stream>>>(call, d);
      key_row_gradients<T, channels.value>
          <<<plain_blocks(g.rows * g.groups * g.keys), kPlainThreads, plain_shared(g, 2),
             device.stream>>>(call, d);
    });
  });
  check_launch("the gradient of attention");
}

template <class T, int kSize, bool kDrop>
void gradients_in_tiles(const AttentionGeometry& g, const KernelArgs& args, CudaDevice& device) {
  const AttentionCall<T> call(g, args, args.inputs.subspan(g.sources() + 3));
  const AttentionGradients<T> d(g, args);
  const int64_t deltas = g.rows * g.queries * g.heads * (kSize / kChunk<T>);
  row_deltas<T, kSize><<<static_cast<unsigned>((deltas + kTensorThreads - 1) / kTensorThreads),
                         kTensorThreads, 0, device.stream>>>(g, d);
  constexpr int kOwn = kOwnRows<kSize, T>;
  const int64_t parts = key_parts(g, sizeof(T));
  key_tile_gradients<T, kSize, kDrop>
      <<<tensor_grid(g.groups * parts, g.rows, g.keys, kOwn), kTensorThreads,
         key_shared_bytes<kSize, T>(), device.stream>>>(call, d);
  if (parts > 1) {
    const int64_t pairs = g.rows * g.keys * g.groups * kSize / 2;
    sum_key_parts<T><<<static_cast<unsigned>((pairs + kTensorThreads - 1) / kTensorThreads),
                       kTensorThreads, 0, device.stream>>>(g, d, parts);
  }
  query_tile_gradients<T, kSize, kDrop>
      <<<tensor_grid(g.heads, g.rows, g.queries, kOwn), kTensorThreads,
         query_shared_bytes<kSize, T>(), device.stream>>>(call, d);
  check_launch("the gradient of attention");
}

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  const AttentionGeometry g = attention_geometry("attention_backward", s.inputs, s.attrs);
  return make_attention(
      g, s.inputs[0].dtype, device, delta_bytes(g), tile_scratch(g, size_of(s.inputs[0].dtype)),
      [&device, g](const KernelArgs& args) { gradients_plainly(g, args, device); },
      [&device, g](auto tag, auto size, auto drop) {
        using T = typename decltype(tag)::type;
        constexpr int kSize = decltype(size)::value;
        std::function<void(const KernelArgs&)> run;
        if (allow_shared(key_tile_gradients<T, kSize, drop.value>, key_shared_bytes<kSize, T>()) &&
            allow_shared(query_tile_gradients<T, kSize, drop.value>,
                         query_shared_bytes<kSize, T>())) {
          run = [&device, g](const KernelArgs& args) {
            gradients_in_tiles<T, decltype(size)::value, decltype(drop)::value>(g, args, device);
          };
        }
        return run;
      });
}

}  // namespace

extern const CudaKernel cuda_attention_backward{"attention_backward", make};

}  // namespace thimble
