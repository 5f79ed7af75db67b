// conv2d: one pass over x; the weights are packed first.
#include "backend/cpu/convolution.h"
#include "backend/cpu/cpu_kernel.h"

namespace thimble {
namespace {

class Conv2d final : public Kernel {
 public:
  Conv2d(const Convolution& c, bool add) {
    const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
    const auto pd = pick_implementation([&] {
      return dnnl::convolution_forward::primitive_desc(
          {dnnl::prop_kind::forward_training, dnnl::algorithm::convolution_direct, c.x(c.batch),
           c.any_weights(), c.y(c.batch), c.strides(), c.pads(), c.pads()},
          dnnl_attributes(add), engine);
    });
    WorkspaceParts parts;
    if (pd.weights_desc() != c.weights()) {
      pack_ = dnnl_reorder(engine, c.weights(), pd.weights_desc(), false);
      packed_at_ = parts.take(pd.weights_desc().get_size());
    }
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
    const void* weights = args.inputs[1].data;
    if (pack_) {
      std::byte* packed = args.workspace + packed_at_;
      pack_.run({weights, packed});
      weights = packed;
    }
    convolve_.run(
        {args.inputs[0].data, weights, args.outputs[0].data, args.workspace + scratch_at_});
  }

 private:
  DnnlCall pack_, convolve_;
  int64_t packed_at_ = 0, scratch_at_ = 0;
};

std::unique_ptr<Kernel> make(const Signature& s) {
  if (!all_f32(s)) return nullptr;
  return make_if_supported<Conv2d>(convolution_of(s.inputs[0], s.inputs[1], s.outputs[0], s.attrs),
                                   s.accumulate != 0);
}

}  // namespace

extern const CpuKernel cpu_conv2d;
const CpuKernel cpu_conv2d{"conv2d", make};

}  // namespace thimble
