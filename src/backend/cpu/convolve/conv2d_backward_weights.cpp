// conv2d_backward_weights: the gradient is made in the primitive's layout, then copied (or added)
// into ours. In 16 bits, it is made in f32 and rounded once: of all images where the library takes them
// as they are, else summed up over slices of them.
#include "backend/cpu/convolve/convolution_call.h"
#include "backend/cpu/convolve/image_slices.h"
#include "backend/cpu/convolve/packed_weights.h"
#include "backend/cpu/cpu_kernel.h"
#include "backend/cpu/parallel.h"
#include "backend/cpu/sixteen_bit.h"

namespace thimble {
namespace {

THIMBLE_FOR_EACH_ISA void add_range(const float* __restrict x, float* __restrict y, int64_t begin,
                                    int64_t end) {
  for (int64_t i = begin; i < end; ++i) y[i] += x[i];
}

class Conv2dBackwardWeights final : public Kernel {
 public:
  Conv2dBackwardWeights(const Convolution& c, const Signature& s)
      : batch_(c.batch),
        add_(s.accumulate != 0),
        as_stored_(c.dtype == s.inputs[0].dtype),
        narrow_(is_sixteen_bit(s.outputs[0].dtype)) {
    slice_ = as_stored_ ? batch_ : slice_images(c, s.inputs[0].dtype);
    channels_ = c.out_c;
    Convolution block = c.of(slice_);
    block.result = DType::f32;
    // Twice: the sum so far, and what a slice adds.
    block_ = as_stored_ ? c.out_c
                        : block_channels(c.out_c, 2 * c.bytes_per_output(), c, s.inputs[0].dtype);
    block.out_c = block_;
    convolve_ = ConvolutionCall(ConvolutionPart::backward_weights, block);
    const dnnl::memory::desc& layout = convolve_.weights();
    WorkspaceParts parts;
    if (narrow_) {
      gradient_ = PackedWeights(c, block, s.outputs[0].dtype, layout, false);
      packed_count_ = static_cast<int64_t>(layout.get_size() / sizeof(float));
      if (slice_ < batch_) sum_at_ = parts.take(layout.get_size());
    } else if (add_ || layout != c.weights()) {
      const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
      unpack_ = dnnl_reorder(engine, layout, c.weights(), add_);
    }
    if (narrow_ || unpack_) packed_at_ = parts.take(layout.get_size());
    if (!as_stored_) {
      x_ = ImageSlices(s.inputs[0], slice_, c.in_c, parts);
      dy_ = ImageSlices(s.inputs[1], slice_, block_, parts);
    }
    scratch_at_ = parts.take(convolve_.scratch_bytes());
    name = convolve_.name();
    workspace = parts.total();
  }

  void run(const KernelArgs& args) override {
    if (!as_stored_) {
      for (int64_t o = 0; o < channels_; o += block_) run_block(args, o);
      return;
    }
    void* gradient = args.outputs[0].data;
    void* packed = unpack_ || narrow_ ? args.workspace + packed_at_ : gradient;
    convolve_.run(args.inputs[0].data, args.inputs[1].data, packed, args.workspace + scratch_at_);
    if (unpack_) unpack_.run({packed, gradient});
    if (narrow_) gradient_.unpack(static_cast<float*>(packed), args.outputs[0], 0, add_);
  }

 private:
  // The gradient of the weights of outputs [o, o + block).
  void run_block(const KernelArgs& args, int64_t o) {
    std::byte* room = args.workspace;
    auto* part = reinterpret_cast<float*>(room + packed_at_);
    float* sum = slice_ < batch_ ? reinterpret_cast<float*>(room + sum_at_) : part;
    for (int64_t n = 0; n < batch_; n += slice_) {
      const float* x = x_.read(args.inputs[0], {n, 0}, room);
      const float* dy = dy_.read(args.inputs[1], {n, o}, room);
      convolve_.run(x, dy, n == 0 ? sum : part, room + scratch_at_);
      if (n == 0) continue;
      Parts(packed_count_, 1).run([&](int, int64_t begin, int64_t end) {
        add_range(part, sum, begin, end);
      });
    }
    gradient_.unpack(sum, args.outputs[0], o, add_);
  }

  const int64_t batch_;
  const bool add_, as_stored_, narrow_;
  int64_t slice_ = 0, channels_ = 0, block_ = 0, packed_count_ = 0;
  PackedWeights gradient_;
  ImageSlices x_, dy_;
  ConvolutionCall convolve_;
  DnnlCall unpack_;
  int64_t packed_at_ = 0, sum_at_ = 0, scratch_at_ = 0;
};

std::unique_ptr<Kernel> make(const Signature& s) {
  if (!one_stageable_type(s)) return nullptr;
  const Convolution c = convolution_of(s.inputs[0], s.outputs[0], s.inputs[1], s.attrs);
  return make_narrow_or_staged<Conv2dBackwardWeights>(c, s);
}

}  // namespace

extern const CpuKernel cpu_conv2d_backward_weights{"conv2d_backward_weights", make};

}  // namespace thimble
