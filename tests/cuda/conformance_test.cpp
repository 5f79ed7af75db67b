// The kernels of the GPU.
#include "support/conformance.h"

namespace thimble {
namespace {

// All but those that only a CPU runs.
std::vector<const OpDef*> ops_of_the_gpu() {
  std::vector<const OpDef*> ops = ops_under_test();
  std::erase_if(ops, [](const OpDef* op) { return op->name == "gather_fold_8bit"; });
  return ops;
}

INSTANTIATE_TEST_SUITE_P(Cuda, Conformance,
                         testing::Combine(testing::Values("cuda"), testing::ValuesIn(ops_of_the_gpu())),
                         conformance_name);

}  // namespace
}  // namespace thimble
