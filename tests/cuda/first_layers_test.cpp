// Gradients of the filters that nets begin with, over pictures of three channels: the CPU's numbers, and the same
// bits wherever they lie.
#include <gtest/gtest.h>

#include "backend/backend.h"
#include "support/op_harness.h"

namespace thimble {
namespace {

struct FirstLayer {
  Shape x, w;
  int64_t stride, pad;
};

// ResNet's and ConvNeXt's. ViT's, whose patches lie side by side, of several rows. One whose last patches are cut.
const std::vector<FirstLayer> kLayers = {{{2, 33, 30, 3}, {64, 7, 7, 3}, 2, 3},
                                         {{2, 32, 24, 3}, {96, 4, 4, 3}, 4, 0},
                                         {{2, 48, 32, 3}, {384, 16, 16, 3}, 16, 0},
                                         {{1, 50, 32, 3}, {384, 16, 16, 3}, 16, 0},
                                         {{1, 64, 64, 1}, {512, 32, 32, 1}, 32, 0}};

TEST(CudaFirstLayers, HaveTheGradientsOfTheCpu) {
  const OpDef& op = *find_op("conv2d_backward_weights");
  const auto cpu = make_backend("cpu", {.threads = 2});
  const auto gpu = make_backend("cuda", {});
  for (const FirstLayer& layer : kLayers) {
    const Shape dy = {layer.x[0], (layer.x[1] + 2 * layer.pad - layer.w[1]) / layer.stride + 1,
                      (layer.x[2] + 2 * layer.pad - layer.w[2]) / layer.stride + 1, layer.w[0]};
    for (const uint32_t accumulate : {0u, 1u}) {
      const Sample sample = {.inputs = {{layer.x}, {dy}},
                             .attrs = {{"stride", layer.stride},
                                       {"pad", layer.pad},
                                       {"groups", int64_t{1}},
                                       {"kernel_h", layer.w[1]},
                                       {"kernel_w", layer.w[2]}},
                             .accumulate = accumulate};
      for (const auto& [dtype, tolerance] : {std::pair{DType::f16, 4e-3}, {DType::bf16, 3e-2}}) {
        SCOPED_TRACE(describe(op, sample) + " " + std::string(name_of(dtype)));
        const OpCase op_case = make_case(op, sample, switched_types(op, sample, dtype), dtype);
        const auto expected = run_case(op_case, {.backend = cpu.get()});
        const auto got = run_case(op_case, {.backend = gpu.get()});
        const auto moved = run_case(op_case, {.backend = gpu.get(), .shift = 3});
        expect_near(got[0], expected[0], tolerance);
        EXPECT_TRUE(same_bits(got[0], moved[0])) << "differs when repeated elsewhere";
      }
    }
  }
}

}  // namespace
}  // namespace thimble
