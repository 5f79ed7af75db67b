// The file of a net from outside: read when it is first asked for, and never again.
#include <gtest/gtest.h>

#include <filesystem>

#include "imported_runs.h"
#include "pipeline/training_graph.h"
#include "recipe/settings.h"

namespace thimble {
namespace {

TEST(NetFile, IsReadOnceForAllCopiesOfARecipe) {
  const std::filesystem::path path =
      std::filesystem::path(testing::TempDir()) / fmt::format("read_once_{}.json", getpid());
  std::filesystem::copy_file(std::filesystem::path(kNets) / "words.json", path);
  Recipe recipe;
  configure(recipe, {{"model", path.string()}});
  Recipe one = recipe;  // a candidate's
  one.microbatch = 2;
  const size_t nodes = make_graph(one, largest_shape(one)).model.graph.nodes.size();
  std::filesystem::remove(path);
  Recipe other = recipe;
  other.microbatch = 2;
  EXPECT_EQ(make_graph(other, largest_shape(other)).model.graph.nodes.size(), nodes);
}

}  // namespace
}  // namespace thimble
