// The kernels of the CPU.
#include "support/conformance.h"

namespace thimble {
namespace {

INSTANTIATE_TEST_SUITE_P(Cpu, Conformance,
                         testing::Combine(testing::Values("cpu"),
                                          testing::ValuesIn(ops_under_test())),
                         conformance_name);

}  // namespace
}  // namespace thimble
