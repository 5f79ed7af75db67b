// Files of PyTorch's exporters as they are usually called, whose batch norms are gone: refused with the call that
// would do. tests/torch/make_nets.py wrote them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "model/model.h"

namespace thimble {
namespace {

class FoldedOnnx : public testing::TestWithParam<const char*> {};

TEST_P(FoldedOnnx, IsRefusedWithTheCallThatWouldDo) {
  const std::string path = fmt::format("{}/{}.onnx", THIMBLE_TEST_NETS, GetParam());
  try {
    build_model({.name = path, .batch = 4});
    FAIL() << "it was built";
  } catch (const UserError& fault) {
    const std::string said = fault.what();
    EXPECT_NE(said.find(path), std::string::npos) << said;
    EXPECT_NE(said.find("batch norms are folded"), std::string::npos) << said;
    EXPECT_NE(said.find("torch.onnx.export(model, args, file, training="), std::string::npos)
        << said;
  }
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
