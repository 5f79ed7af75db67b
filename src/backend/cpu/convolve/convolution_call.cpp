#include "backend/cpu/convolve/convolution_call.h"

namespace thimble {
namespace {

using dnnl::convolution_backward_data;
using dnnl::convolution_backward_weights;
using dnnl::convolution_forward;

constexpr auto kDirect = dnnl::algorithm::convolution_direct;

convolution_forward::desc forward(const Convolution& c) {
  return {dnnl::prop_kind::forward_training,
          kDirect,
          c.x(),
          c.any_weights(),
          c.y(),
          c.strides(),
          c.dilations(),
          c.pads(),
          c.pads()};
}

}  // namespace

ConvolutionCall::ConvolutionCall(ConvolutionPart part, const Convolution& c, bool add) {
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  // A primitive's description and what it reads and writes, in run()'s order.
  const auto take = [&]<class Description>(const Description& pd, const DnnlArgument& first,
                                           const DnnlArgument& second, const DnnlArgument& result) {
    if (c.dtype != DType::f32 && (draws_memory(pd) || !multiplies_narrow(pd))) {
      throw dnnl::error(dnnl_unimplemented, "a convolution in 16 bits");
    }
    if (draws_memory(pd)) {
      own_ = PatchProduct(part, c, add);
      weights_ = c.weights();
      scratch_bytes_ = own_.scratch_bytes();
      who_ = "own ";
      what_ = own_.name();
      return;
    }
    weights_ = part == ConvolutionPart::backward_weights ? result.desc : second.desc;
    scratch_bytes_ = pd.scratchpad_desc().get_size();
    who_ = "onednn ";
    what_ = pd.impl_info_str();
    call_ = DnnlCall(engine, dnnl::primitive(pd.get()),
                     {first, second, result, {DNNL_ARG_SCRATCHPAD, pd.scratchpad_desc()}});
  };
  if (part == ConvolutionPart::forward) {
    const auto pd =
        pick_implementation<convolution_forward>(forward(c), dnnl_attributes(add), engine);
    take(pd, {DNNL_ARG_SRC, pd.src_desc()}, {DNNL_ARG_WEIGHTS, pd.weights_desc()},
         {DNNL_ARG_DST, pd.dst_desc()});
    return;
  }
  // Backward primitives want to see the forward one before they are made.
  const convolution_forward::primitive_desc hint(forward(c), engine);
  const auto pick = [&]<class Primitive>(const dnnl::memory::desc& x,
                                         const dnnl::memory::desc& weights) {
    return pick_implementation<Primitive>(
        {kDirect, x, weights, c.y(), c.strides(), c.dilations(), c.pads(), c.pads()},
        dnnl_attributes(false), engine, hint);
  };
  Convolution results = c;
  results.dtype = c.result;
  if (part == ConvolutionPart::backward_data) {
    const auto pd = pick.operator()<convolution_backward_data>(results.x(), c.any_weights());
    take(pd, {DNNL_ARG_DIFF_DST, pd.diff_dst_desc()}, {DNNL_ARG_WEIGHTS, pd.weights_desc()},
         {DNNL_ARG_DIFF_SRC, pd.diff_src_desc()});
  } else {
    const auto pd = pick.operator()<convolution_backward_weights>(c.x(), results.any_weights());
    take(pd, {DNNL_ARG_SRC, pd.src_desc()}, {DNNL_ARG_DIFF_DST, pd.diff_dst_desc()},
         {DNNL_ARG_DIFF_WEIGHTS, pd.diff_weights_desc()});
  }
}

void ConvolutionCall::run(const void* first, const void* second, void* result, std::byte* scratch) {
  if (own_) {
    own_.run(static_cast<const float*>(first), static_cast<const float*>(second),
             static_cast<float*>(result), scratch);
  } else {
    call_.run({first, second, result, scratch});
  }
}

}  // namespace thimble
