// conv2d.
#include "backend/cpu/convolve/forward_kernel.h"
#include "backend/cpu/cpu_kernel.h"

namespace thimble {
namespace {

std::unique_ptr<Kernel> make(const Signature& s) {
  if (!one_stageable_type(s)) return nullptr;
  const Convolution c = convolution_of(s.inputs[0], s.inputs[1], s.outputs[0], s.attrs);
  return make_narrow_or_staged<ForwardKernel>(c, s, size_t{0}, false);
}

}  // namespace

extern const CpuKernel cpu_conv2d{"conv2d", make};

}  // namespace thimble
