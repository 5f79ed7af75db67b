// The kernels of the GPU.
#include "support/conformance.h"

namespace thimble {
namespace {

INSTANTIATE_TEST_SUITE_P(Cuda, Conformance,
                         testing::Combine(testing::Values("cuda"),
                                          testing::ValuesIn(ops_under_test())),
                         conformance_name);

}  // namespace
}  // namespace thimble
