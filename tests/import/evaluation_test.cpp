// Imported nets in training and in tests, by hand: statistics, smoothed labels, sizes.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "../file_support.h"
#include "base/io/json.h"
#include "imported_runs.h"
#include "model/model.h"
#include "support/interpreter.h"

namespace thimble {
namespace {

using nlohmann::json;

constexpr int64_t kRows = 3, kChannels = 8, kHigh = 3, kWide = 5;

// The net over pictures with other nodes, the last of which makes its loss and `output` its output.
Model model_with(const TemporaryFolder& folder, json x_shape, json nodes, const char* output,
                 bool training) {
  json net = read_json(kNets + "/pictures.json", "a net");
  net["inputs"][0]["shape"] = std::move(x_shape);
  net["loss"] = nodes.back()["out"][0];
  net["nodes"] = std::move(nodes);
  net["outputs"] = json::array({{{"name", "output"}, {"value", output}}});
  spill(folder / "net.json", net.dump());
  spill(folder / "pictures.safetensors", slurp(kNets + "/pictures.safetensors"));
  ModelOptions options;
  options.name = folder / "net.json";
  options.batch = kRows;
  options.training = training;
  return build_model(options);
}

json node(const char* op, json in, const char* out, json shape, json attrs = json::object()) {
  return {{"op", op},
          {"in", std::move(in)},
          {"out", {out}},
          {"attrs", std::move(attrs)},
          {"shapes", json::array({std::move(shape)})},
          {"at", ""}};
}

const json kImages = {"rows", kChannels, kHigh, kWide};

json normalised() {
  return json::array(
      {node("batch_norm",
            {"x", "norm.weight", "norm.bias", "norm.running_mean", "norm.running_var"}, "y",
            kImages, {{"momentum", 0.25}, {"epsilon", 0.5}, {"training", true}}),
       node("mean", {"y"}, "loss", json::array(), {{"axes", {0, 1, 2, 3}}, {"keep", false}})});
}

void set_all(Tensor& tensor, double value) {
  for (int64_t i = 0; i < tensor.elements(); ++i) tensor.set(i, value);
}

double x_at(int64_t n, int64_t c, int64_t h, int64_t w) {
  return std::sin(static_cast<double>(((n * kChannels + c) * kHigh + h) * kWide + w)) +
         0.5 * static_cast<double>(c);
}

// Sums of 45 numbers in f32.
constexpr double kClose = 2e-6;

TEST(ImportedNorm, RunningVarianceIsThatOfASampleAndTestsReadIt) {
  const TemporaryFolder folder;
  for (const bool training : {true, false}) {
    const Model model = model_with(folder, kImages, normalised(), "y", training);
    Interpreter run(model.graph);
    set_all(run[model.loss_normalizer], 1.0 / kRows);
    Tensor& x = run[model.feed("x").value];
    const auto at = [&](int64_t n, int64_t c, int64_t h, int64_t w) {
      return ((n * kChannels + c) * kHigh + h) * kWide + w;
    };
    const ValueId mean = model.graph.find("norm.running_mean");
    const ValueId variance = model.graph.find("norm.running_var");
    ASSERT_TRUE(mean.valid() && variance.valid());
    set_all(run[mean], 0.5);
    set_all(run[variance], 3.5);
    set_all(run[model.graph.find("norm.weight")], 2);
    set_all(run[model.graph.find("norm.bias")], -1);
    double means[kChannels] = {}, squares[kChannels] = {};
    constexpr double kCount = kRows * kHigh * kWide;
    for (int64_t c = 0; c < kChannels; ++c) {
      for (int64_t i = 0; i < kRows * kHigh * kWide; ++i) {
        const int64_t n = i / (kHigh * kWide), h = i / kWide % kHigh, w = i % kWide;
        x.set(at(n, c, h, w), x_at(n, c, h, w));
        means[c] += x_at(n, c, h, w) / kCount;
      }
      for (int64_t i = 0; i < kRows * kHigh * kWide; ++i) {
        const double apart = x_at(i / (kHigh * kWide), c, i / kWide % kHigh, i % kWide) - means[c];
        squares[c] += apart * apart;
      }
    }
    run.run();
    run.commit();
    double loss = 0;
    for (int64_t c = 0; c < kChannels; ++c) {
      const double moved_mean = training ? 0.75 * 0.5 + 0.25 * means[c] : 0.5;
      const double moved_variance = training ? 0.75 * 3.5 + 0.25 * squares[c] / (kCount - 1) : 3.5;
      EXPECT_NEAR(run[mean].get(c), moved_mean, kClose * 4) << c;
      EXPECT_NEAR(run[variance].get(c), moved_variance, kClose * 4) << c;
      const double by = training ? squares[c] / kCount : 3.5;
      const double from = training ? means[c] : 0.5;
      loss += (2 * (means[c] - from) / std::sqrt(by + 0.5) - 1) / kChannels;
    }
    EXPECT_NEAR(run[model.loss].get(0), loss, kClose) << (training ? "training" : "a test");
  }
}

TEST(ImportedLoss, LabelsAreSmoothedInTrainingAlone) {
  const TemporaryFolder folder;
  constexpr int64_t kClasses = 5;
  constexpr double kSmoothing = 0.25;
  const json nodes =
      json::array({node("relu", {"x"}, "logits", {"rows", kClasses}),
                   node("cross_entropy", {"logits", "target"}, "loss", json::array(),
                        {{"ignore", 1}, {"label_smoothing", kSmoothing}, {"reduction", "mean"}})});
  const double labels[kRows] = {4, 1, 0};  // the second does not count
  for (const bool training : {true, false}) {
    const Model model = model_with(folder, {"rows", kClasses}, nodes, "logits", training);
    Interpreter run(model.graph);
    set_all(run[model.loss_normalizer], 1.0 / kRows);
    for (int64_t r = 0; r < kRows; ++r) {
      run[model.feed("target").value].set(r, labels[r]);
      for (int64_t c = 0; c < kClasses; ++c) {
        run[model.feed("x").value].set(r * kClasses + c, 0.5 * static_cast<double>(r + c * c % 4));
      }
    }
    run.run();
    // All three rows say class 1. The one that has this label does not count, and so is not right.
    ASSERT_EQ(model.metrics.size(), 1u);
    EXPECT_EQ(run[model.metrics[0].sum].get(0), 0);
    EXPECT_EQ(run[model.metrics[0].count].get(0), 2);
    double loss = 0;
    for (const int64_t r : {0, 2}) {
      double sum = 0, all = 0;
      const auto logit = [&](int64_t c) { return 0.5 * static_cast<double>(r + c * c % 4); };
      for (int64_t c = 0; c < kClasses; ++c) sum += std::exp(logit(c)), all += logit(c);
      const double smoothing = training ? kSmoothing : 0;
      loss += std::log(sum) - (1 - smoothing) * logit(static_cast<int64_t>(labels[r])) -
              smoothing * all / kClasses;
    }
    EXPECT_NEAR(run[model.loss].get(0), loss / 2, kClose) << (training ? "training" : "a test");
  }
}

// Both axes, either one, and none.
TEST(ImportedResize, ChangesTheAxesThatItShould) {
  const TemporaryFolder folder;
  for (const auto& [high, wide] :
       {std::pair(kHigh, kWide), {kHigh, 2 * kWide}, {2 * kHigh, kWide}, {2 * kHigh, 3 * kWide}}) {
    SCOPED_TRACE(fmt::format("{} x {}", high, wide));
    const json to = {"rows", kChannels, high, wide};
    const json nodes = json::array(
        {node("resize", {"x"}, "y", to, {{"size", {high, wide}}, {"mode", "nearest"}}),
         node("mul", {"y", "y"}, "z", to),
         node("mean", {"z"}, "loss", json::array(), {{"axes", {0, 1, 2, 3}}, {"keep", false}})});
    const Model model = model_with(folder, kImages, nodes, "z", true);
    Interpreter run(model.graph);
    set_all(run[model.loss_normalizer], 1.0 / kRows);
    Tensor& x = run[model.feed("x").value];
    for (int64_t i = 0; i < x.elements(); ++i) x.set(i, static_cast<double>(i % 61));
    run.run();
    ASSERT_EQ(model.outputs.size(), 1u);
    const Tensor& z = run[model.outputs[0].value];
    ASSERT_EQ(z.type().shape, (Shape{kRows, high, wide, kChannels}));  // channels lie last here
    for (int64_t i = 0; i < z.elements(); ++i) {
      const int64_t n = i / (high * wide * kChannels), c = i % kChannels;
      const int64_t h = i / (wide * kChannels) % high, w = i / kChannels % wide;
      const int64_t from =
          ((n * kChannels + c) * kHigh + h * kHigh / high) * kWide + w * kWide / wide;
      ASSERT_EQ(z.get(i), static_cast<double>((from % 61) * (from % 61))) << i;
    }
  }
}

}  // namespace
}  // namespace thimble
