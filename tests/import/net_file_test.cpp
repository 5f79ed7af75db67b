// The file of a net from outside: read when it is first asked for, and never again.
#include <gtest/gtest.h>

#include <filesystem>

#include "base/error.h"
#include "imported_runs.h"
#include "pipeline/training_graph.h"
#include "recipe/settings.h"
#include "weights/safetensors.h"

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

// A net whose weights stay in the folder that they came in.
TEST(NetFile, WeightsOfABaseAreThoseOfACopy) {
  const TemporaryFolder folder;
  const std::string weights = folder / "words.safetensors", base = folder / "base.safetensors";
  for (const std::string kind : {".json", ".safetensors"}) {
    std::filesystem::copy_file(kNets + "/words" + kind, folder / ("words" + kind));
  }
  Recipe recipe = recipe_of("words");
  recipe.model.name = folder / "words.json";
  const Ended copied = train(recipe);

  // The matrices go to a file of their own, under other names.
  std::vector<std::vector<std::byte>> room;
  std::vector<TensorToWrite> here, there;
  nlohmann::json moved, net = nlohmann::json::parse(slurp(folder / "words.json"));
  {
    const SafetensorsFile stored(weights);
    for (const StoredTensor& tensor : stored.tensors()) {
      room.emplace_back(static_cast<size_t>(tensor.type.bytes().count));
      stored.read_part(tensor, 0, room.back());
      const auto parameter = std::ranges::find_if(
          net["parameters"], [&](const auto& one) { return one["name"] == tensor.name; });
      const bool moves = parameter != net["parameters"].end() && tensor.type.shape.rank() == 2;
      if (moves) moved[tensor.name] = "of." + tensor.name;
      (moves ? there : here)
          .push_back({moves ? "of." + tensor.name : tensor.name, tensor.type, room.back()});
    }
  }
  ASSERT_FALSE(there.empty());
  ASSERT_FALSE(here.empty());
  net["weights"] = "words.index.json";
  const nlohmann::json index = {{"thimble_weights", 1},
                                {"own", "words.safetensors"},
                                {"base", "base.safetensors"},
                                {"tensors", moved}};
  spill(folder / "words.index.json", index.dump());
  write_safetensors(weights, here);
  write_safetensors(base, there);
  spill(folder / "words.json", net.dump());
  const Ended apart = train(recipe);
  EXPECT_EQ(apart.losses, copied.losses);
  EXPECT_EQ(apart.weights, copied.weights);
  EXPECT_EQ(apart.arena, copied.arena);

  std::filesystem::remove(base);
  const std::string fault = message_of<UserError>([&] { train(recipe); });
  EXPECT_NE(fault.find("'" + base + "', which is not there"), std::string::npos) << fault;
  for (const char* key : {"own", "base", "tensors"}) {
    nlohmann::json less = index;
    less.erase(key);
    spill(folder / "words.index.json", less.dump());
    const std::string lacks = message_of<UserError>([&] { train(recipe); });
    EXPECT_NE(lacks.find("words.index.json' names no"), std::string::npos) << lacks;
  }
}

}  // namespace
}  // namespace thimble
