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
                                               "mpi       .+\n\n"
                                               "The .+\n[0-9a-f]{12} is a digest .+\n.+\n")))
      << outcome.out;
}

// The digest is that behind the version's +, and the two hashes are told apart.
TEST(Version, ExplainsItsTwoHashes) {
  const std::string out = thimble_says({"--version"}).out;
  const size_t plus = out.find('+');
  ASSERT_NE(plus, std::string::npos) << out;
  EXPECT_NE(out.find("\n" + out.substr(plus + 1, 12) + " is a digest"), std::string::npos) << out;
  const size_t commit = out.find("commit    ") + 10;
  const std::string hash = out.substr(commit, out.find('\n', commit) - commit);
  const bool known = hash != "unknown";
  EXPECT_NE(
      out.find(known ? "\nThe commit is that of the sources" : "\nThe sources were in no git"),
      std::string::npos)
      << out;
  EXPECT_EQ(out.find("which were changed since") != std::string::npos, hash.ends_with("-dirty"));
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
