// One channel's map of batch_norm. Forward and backward compute the pre-activation with the same
// operations, so that a relu's mask is the same in both.
#pragma once

#include "graph/op.h"

namespace thimble {

struct ChannelMap {
  float mean, scale, beta;  // scale: gamma / deviation

  __device__ float pre_activation(float x) const {
    return __fmaf_rn(__fsub_rn(x, mean), scale, beta);
  }
};

struct NormParameters {
  const float *mean, *var, *gamma, *beta;
  float epsilon;

  explicit NormParameters(const KernelArgs& args)
      : mean(args.inputs[1].as<float>()),
        var(args.inputs[2].as<float>()),
        gamma(args.inputs[3].as<float>()),
        beta(args.inputs[4].as<float>()),
        epsilon(static_cast<float>(args.attrs->real("epsilon", 1e-5))) {}

  __device__ ChannelMap channel(int c) const {
    return {mean[c], __fmul_rn(gamma[c], rstd(c)), beta[c]};
  }
  __device__ float rstd(int c) const { return __frcp_rn(__fsqrt_rn(__fadd_rn(var[c], epsilon))); }
};

}  // namespace thimble
