// dynamicconv: the published sizes, and rows that know nothing of each other or of their padding.
#include <gtest/gtest.h>

#include "graph/builder.h"
#include "model/model.h"
#include "support/interpreter.h"

namespace thimble {
namespace {

// The layers of dynamicconv-iwslt have 27.36 million parameters; three tables of words come on top.
TEST(TranslatorModel, HasThePublishedSize) {
  const Graph graph = build_model({.name = "dynamicconv-iwslt"}).graph;
  EXPECT_EQ(parameter_count(graph) - (8848 + 2 * 6632) * 512, 27'363'840);
}

class Logits {
 public:
  explicit Logits(std::string_view family)
      : model_(build_model({.name = std::string(family) +
                                    ":width=16,heads=2,encoder=2,decoder=2,kernel=7,length=8,"
                                    "source-vocabulary=13,target-vocabulary=11",
                            .batch = 2,
                            .training = false,
                            .generating = true})),
        run_(model_.graph, nullptr, 3) {
    set("source", {3, 4, 5, 6, 2, 0, 0, 0, 7, 8, 2, 0, 0, 0, 0, 0});
    set("source_length", {5, 3});
    set("target_in", {1, 5, 6, 0, 0, 0, 0, 0, 1, 9, 9, 4, 0, 0, 0, 0});
    put(model_.query_positions, {2, 8 + 3});
  }

  void set(const char* field, const std::vector<int>& numbers) {
    put(model_.feed(field).value, numbers);
  }
  // Of one row.
  std::vector<double> of(int64_t row) {
    run_.run();
    std::vector<double> logits;
    const Tensor& all = run_[model_.outputs[0].value];
    for (int64_t i = row * 11; i < (row + 1) * 11; ++i) logits.push_back(all.get(i));
    return logits;
  }

 private:
  void put(ValueId value, const std::vector<int>& numbers) {
    Tensor& tensor = run_[value];
    ASSERT_EQ(tensor.elements(), static_cast<int64_t>(numbers.size()));
    for (size_t i = 0; i < numbers.size(); ++i) {
      tensor.set(static_cast<int64_t>(i), static_cast<double>(numbers[i]));
    }
  }

  Model model_;
  Interpreter run_;
};

// The words after a beginning depend on no later ones, no padding of the source and no other row.
TEST(TranslatorModel, LogitsDependOnTheSourceAndTheBeginningOnly) {
  for (const char* family : {"dynamicconv", "lightconv"}) {
    SCOPED_TRACE(family);
    Logits net(family);
    const std::vector<double> before = net.of(0);
    net.set("source", {3, 4, 5, 6, 2, 9, 9, 9, 8, 8, 8, 2, 0, 0, 0, 0});
    net.set("target_in", {1, 5, 6, 7, 7, 7, 7, 7, 1, 4, 4, 4, 4, 0, 0, 0});
    EXPECT_EQ(net.of(0), before);
    net.set("source", {3, 4, 5, 7, 2, 0, 0, 0, 8, 8, 8, 2, 0, 0, 0, 0});
    EXPECT_NE(net.of(0), before);
  }
}

}  // namespace
}  // namespace thimble
