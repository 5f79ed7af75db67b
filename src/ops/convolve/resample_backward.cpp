// resample_backward(dy [N,h,w,C]) -> dx [N,H,W,C]; attrs h, w (of dx) and mode, as of resample.
#include "ops/convolve/resample.h"

namespace thimble {

extern const OpDef op_resample_backward{
    .name = "resample_backward",
    .summary = "gradient of resample",
    .infer = [](std::span<const TensorType> inputs,
                const Attrs& attrs) { return infer_resample("resample_backward", inputs, attrs); },
    .reference = [](const KernelArgs& args) { run_resample("resample_backward", args, true); },
    .work = resample_work,
    .samples = [] { return resample_samples(true); },
    .accumulates = 1,
};

}  // namespace thimble
