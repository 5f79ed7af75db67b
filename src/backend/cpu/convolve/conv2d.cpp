// conv2d: one pass over x; the weights are packed first.
#include "backend/cpu/convolve/image_slices.h"
#include "backend/cpu/convolve/packed_weights.h"
#include "backend/cpu/cpu_kernel.h"

namespace thimble {
namespace {

class Conv2d final : public Kernel {
 public:
  explicit Conv2d(const Signature& s) : batch_(s.inputs[0].shape[0]), add_(s.accumulate != 0) {
    const Convolution c = convolution_of(s.inputs[0], s.inputs[1], s.outputs[0], s.attrs);
    slice_ = slice_images(c, s.inputs[0].dtype);
    channels_ = c.out_c;
    Convolution block = c;
    block.out_c = block_ = block_channels(c.out_c, c.bytes_per_output(), c, s.inputs[0].dtype);
    const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
    const auto pd = pick_implementation<dnnl::convolution_forward>(
        {dnnl::prop_kind::forward_training, dnnl::algorithm::convolution_direct, c.x(slice_),
         block.any_weights(), block.y(slice_), c.strides(), c.pads(), c.pads()},
        dnnl_attributes(add_), engine);
    WorkspaceParts parts;
    weights_ = PackedWeights(c, block, s.inputs[1].dtype, pd.weights_desc(), false);
    packed_at_ = parts.take(weights_.bytes());
    x_ = ImageSlices(s.inputs[0], slice_, c.in_c, parts);
    y_ = ImageSlices(s.outputs[0], slice_, block_, parts);
    scratch_at_ = parts.take(pd.scratchpad_desc().get_size());
    convolve_ = DnnlCall(engine, dnnl::convolution_forward(pd),
                         {{DNNL_ARG_SRC, pd.src_desc()},
                          {DNNL_ARG_WEIGHTS, pd.weights_desc()},
                          {DNNL_ARG_DST, pd.dst_desc()},
                          {DNNL_ARG_SCRATCHPAD, pd.scratchpad_desc()}});
    name = std::string("onednn ") + pd.impl_info_str();
    workspace = parts.total();
  }

  void run(const KernelArgs& args) override {
    std::byte* room = args.workspace;
    for (int64_t o = 0; o < channels_; o += block_) {
      const void* weights = weights_.pack(args.inputs[1], o, room + packed_at_);
      for (int64_t n = 0; n < batch_; n += slice_) {
        const float* x = x_.read(args.inputs[0], {n, 0}, room);
        float* y = y_.open(args.outputs[0], {n, o}, room, add_);
        convolve_.run({x, weights, y, room + scratch_at_});
        y_.close(args.outputs[0], {n, o}, room);
      }
    }
  }

 private:
  const int64_t batch_;
  const bool add_;
  int64_t slice_ = 0, channels_ = 0, block_ = 0;
  PackedWeights weights_;
  ImageSlices x_, y_;
  DnnlCall convolve_;
  int64_t packed_at_ = 0, scratch_at_ = 0;
};

std::unique_ptr<Kernel> make(const Signature& s) {
  return one_stageable_type(s) ? make_if_supported<Conv2d>(s) : nullptr;
}

}  // namespace

extern const CpuKernel cpu_conv2d;
const CpuKernel cpu_conv2d{"conv2d", make};

}  // namespace thimble
