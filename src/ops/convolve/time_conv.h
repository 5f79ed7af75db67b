// dynamic_conv and light_conv (time_conv_geometry.h says what they are): shape rules, gradients,
// plain kernels and samples, by whether all positions share their kernels.
#pragma once

#include "graph/builder.h"
#include "ops/convolve/time_conv_geometry.h"

namespace thimble {

template <bool kShared>
struct TimeConvOp {
  static constexpr std::string_view kName = kShared ? "light_conv" : "dynamic_conv";
  static constexpr std::string_view kBackward =
      kShared ? "light_conv_backward" : "dynamic_conv_backward";

  static std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs& attrs);
  static void gradient(GradientBuilder& g);
  static void reference(const KernelArgs& args);
  static Bytes reference_workspace(const Signature& signature);
  static Work work(const Signature& signature);
  static std::vector<Sample> samples();

  static std::vector<TensorType> infer_backward(std::span<const TensorType> inputs,
                                                const Attrs& attrs);
  static void reference_backward(const KernelArgs& args);
  static Bytes reference_backward_workspace(const Signature& signature);
  static Work work_backward(const Signature& signature);
  static std::vector<Sample> samples_backward();
};
extern template struct TimeConvOp<false>;
extern template struct TimeConvOp<true>;

}  // namespace thimble
