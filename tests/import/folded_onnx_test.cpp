// Files of PyTorch's exporters as they are usually called, whose batch norms are folded into convolutions: trained
// so, unless norms are to be trained. tests/torch/make_nets.py wrote them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/field.h"
#include "model/model.h"

namespace thimble {
namespace {

class FoldedOnnx : public testing::TestWithParam<const char*> {};

TEST_P(FoldedOnnx, IsRefusedWithTheCallThatWouldDoWhereNormsAreToBeTrained) {
  const std::string path = fmt::format("{}/{}.onnx", THIMBLE_TEST_NETS, GetParam());
  ModelOptions options = {.name = path, .batch = 4};
  Fields list;
  list_own_fields(options, list);
  const std::vector<Field> fields = std::move(list).take();
  find_field(fields, "norms")->set("train");
  try {
    build_model(options);
    FAIL() << "it was built";
  } catch (const UserError& fault) {
    const std::string said = fault.what();
    EXPECT_NE(said.find(path), std::string::npos) << said;
    EXPECT_NE(said.find("batch norms are folded"), std::string::npos) << said;
    EXPECT_NE(said.find("--norms frozen"), std::string::npos) << said;
    EXPECT_NE(said.find("torch.onnx.export(model, args, file, training="), std::string::npos)
        << said;
  }
}

// The convolutions are trained as they are, with their norms in them.
TEST_P(FoldedOnnx, IsBuiltAsItIsOtherwise) {
  const std::string path = fmt::format("{}/{}.onnx", THIMBLE_TEST_NETS, GetParam());
  const Model model = build_model({.name = path, .batch = 4});
  EXPECT_EQ(model.feeds.size(), 2U);  // pictures and labels
  for (const Node& node : model.graph.nodes) EXPECT_NE(node.op->name, "batch_norm_stats");
}

INSTANTIATE_TEST_SUITE_P(Exporters, FoldedOnnx, testing::Values("folded", "folded_dynamo"),
                         [](const auto& one) { return std::string(one.param); });

// Its class is called BatchNormFree, which the exporter notes beside every node.
TEST(UnfoldedOnnx, IsBuiltWhateverItsClassIsCalled) {
  const std::string path = fmt::format("{}/norm_free.onnx", THIMBLE_TEST_NETS);
  const Model model = build_model({.name = path, .batch = 4});
  EXPECT_EQ(model.feeds.size(), 2U);  // pictures and labels
}

}  // namespace
}  // namespace thimble
