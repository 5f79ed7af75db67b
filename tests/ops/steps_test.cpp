// Functions that are flat: what they make, and that their gradient is zero whatever arrives.
#include "autodiff/autodiff.h"
#include "graph/builder.h"
#include "reference_call.h"
#include "support/interpreter.h"

namespace thimble {
namespace {

std::vector<double> made(const char* of) {
  const TestTensor x = {{{7}, DType::f32}, {-2.5, -1.5, -0.2, 0.5, 1.5, 2.5, 2.7}};
  return reference_call("map", {x}, {{"of", std::string(of)}})[0];
}

TEST(Steps, RoundOfTwoThatAreAsNearTakesTheEvenOne) {
  EXPECT_EQ(made("round"), (std::vector<double>{-2, -2, 0, 0, 2, 2, 3}));
}
TEST(Steps, Others) {
  EXPECT_EQ(made("floor"), (std::vector<double>{-3, -2, -1, 0, 1, 2, 2}));
  EXPECT_EQ(made("ceil"), (std::vector<double>{-2, -1, 0, 1, 2, 3, 3}));
  EXPECT_EQ(made("trunc"), (std::vector<double>{-2, -1, 0, 0, 1, 2, 2}));
}

TEST(Steps, GradientIsZeroWhateverArrives) {
  for (const char* of : {"ceil", "floor", "round", "trunc"}) {
    Graph graph;
    Builder build(graph);
    const ValueId x = build.input("x", {{2}, DType::f64});
    const ValueId dy = build.input("dy", {{2}, DType::f64});
    const ValueId y = build.op("map", {x}, {{"of", std::string(of)}});
    const std::vector<GradientRoot> roots = {{y, dy}};
    const std::vector<ValueId> wrt = {x};
    const ValueId dx = add_gradients(graph, roots, wrt)[0];
    ASSERT_TRUE(dx.valid()) << of;
    Interpreter run(graph);
    run[x] = Tensor(TensorType{{2}, DType::f64});
    run[dy] = Tensor(TensorType{{2}, DType::f64});
    run[dy].set(0, std::numeric_limits<double>::infinity());
    run[dy].set(1, 3);
    run.run();
    EXPECT_EQ(run[dx].get(0), 0) << of;
    EXPECT_EQ(run[dx].get(1), 0) << of;
  }
}

}  // namespace
}  // namespace thimble
