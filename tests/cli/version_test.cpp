// `thimble --version` says which program this is and what it can run on.
#include <regex>

#include "support/run_thimble.h"

namespace thimble {
namespace {

TEST(Version, NamesTheCommitTheCompilerAndTheBackends) {
  const Outcome outcome = thimble_says({"--version"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(
      std::regex_match(outcome.out, std::regex("thimble [0-9]+\\.[0-9]+\\.[0-9]+\\+[0-9a-f]{12}\n"
                                               "commit    [-0-9a-zA-Z.]+\n"
                                               "compiler  .+\n"
                                               "cpu       (oneDNN [0-9.]+, .+|plain kernels.*)\n"
                                               "cuda      .+\n"
                                               "mpi       .+\n")))
      << outcome.out;
}

TEST(Version, SaysWhyThereIsNoGpuBackend) {
  setenv("THIMBLE_CUDA_LIBRARY", "/no/such/library.so", 1);
  const Outcome outcome = thimble_says({"--version"});
  unsetenv("THIMBLE_CUDA_LIBRARY");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("cuda      THIMBLE_CUDA_LIBRARY names '/no/such/library.so'"),
            std::string::npos)
      << outcome.out;
}

}  // namespace
}  // namespace thimble
