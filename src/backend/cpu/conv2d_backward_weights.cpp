// conv2d_backward_weights: the gradient is made in the primitive's layout, then copied (or added)
// into ours.
#include "backend/cpu/convolution.h"
#include "backend/cpu/cpu_kernel.h"

namespace thimble {
namespace {

class Conv2dBackwardWeights final : public Kernel {
 public:
  Conv2dBackwardWeights(const Convolution& c, bool add) {
    const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
    const auto hint = forward_hint(engine, c, c.batch);
    const auto pd = pick_implementation([&] {
      return dnnl::convolution_backward_weights::primitive_desc(
          {dnnl::algorithm::convolution_direct, c.x(c.batch), c.any_weights(), c.y(c.batch),
           c.strides(), c.pads(), c.pads()},
          dnnl_attributes(false), engine, hint);
    });
    WorkspaceParts parts;
    if (add || pd.diff_weights_desc() != c.weights()) {
      unpack_ = dnnl_reorder(engine, pd.diff_weights_desc(), c.weights(), add);
      packed_at_ = parts.take(pd.diff_weights_desc().get_size());
    }
    scratch_at_ = parts.take(pd.scratchpad_desc().get_size());
    convolve_ = DnnlCall(engine, dnnl::convolution_backward_weights(pd),
                         {{DNNL_ARG_SRC, pd.src_desc()},
                          {DNNL_ARG_DIFF_DST, pd.diff_dst_desc()},
                          {DNNL_ARG_DIFF_WEIGHTS, pd.diff_weights_desc()},
                          {DNNL_ARG_SCRATCHPAD, pd.scratchpad_desc()}});
    name = std::string("onednn ") + pd.impl_info_str();
    workspace = parts.total();
  }

  void run(const KernelArgs& args) override {
    void* gradient = args.outputs[0].data;
    void* packed = unpack_ ? args.workspace + packed_at_ : gradient;
    convolve_.run({args.inputs[0].data, args.inputs[1].data, packed, args.workspace + scratch_at_});
    if (unpack_) unpack_.run({packed, gradient});
  }

 private:
  DnnlCall convolve_, unpack_;
  int64_t packed_at_ = 0, scratch_at_ = 0;
};

std::unique_ptr<Kernel> make(const Signature& s) {
  if (!all_f32(s)) return nullptr;
  return make_if_supported<Conv2dBackwardWeights>(
      convolution_of(s.inputs[0], s.outputs[0], s.inputs[1], s.attrs), s.accumulate != 0);
}

}  // namespace

extern const CpuKernel cpu_conv2d_backward_weights;
const CpuKernel cpu_conv2d_backward_weights{"conv2d_backward_weights", make};

}  // namespace thimble
