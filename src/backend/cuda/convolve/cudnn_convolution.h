// A convolution of cuDNN's, bound to one of its engines: deterministic, compiled ahead of time, in
// scratch of known size. Activations are channels-last, x [N,H,W,C]; weights [O,kH,kW,C/groups].
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "backend/cuda/device.h"
#include "backend/kernel.h"

namespace thimble {

enum class ConvPass : uint8_t { forward, data, weights };

struct ConvShape {
  Shape x, w, y;
  std::array<int64_t, 2> stride = {1, 1}, pad = {0, 0}, dilation = {1, 1};  // down, across
  DType dtype = DType::f32;
};

// A descriptor of cuDNN's, destroyed with its owner.
struct DestroyDescriptor {
  void operator()(void* descriptor) const { cudnnBackendDestroyDescriptor(descriptor); }
};
using Descriptor = std::unique_ptr<void, DestroyDescriptor>;

// A way to run it.
struct ConvEngine {
  Descriptor plan;
  int64_t number = 0;  // cuDNN's name for the engine
  Bytes scratch;
};

class CudnnConvolution {
 public:
  CudnnConvolution(CudaDevice& device, ConvPass pass, const ConvShape& shape, bool add);

  // Engines that qualify, best guess first.
  std::vector<ConvEngine> engines() const;
  // x, w and y, of which the pass's own result is written or added into.
  void run(const ConvEngine& engine, void* x, void* w, void* y, std::byte* scratch) const;

 private:
  bool qualifies(void* engine_config) const;

  CudaDevice& device_;
  const DType dtype_;
  std::vector<Descriptor> parts_;  // what the graph refers to
  Descriptor graph_;
};

// The convolution of a signature's kernel: which of its tensors are x, w and y. Where every channel
// has a filter of its own, that of depthwise.h.
std::unique_ptr<Kernel> make_convolution(CudaDevice& device, ConvPass pass, const Signature& s);

}  // namespace thimble
