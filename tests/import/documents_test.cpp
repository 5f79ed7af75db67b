// Documents packed into the rows of a decoder (hf:FOLDER): each trains as it does alone, whatever
// the micro-batches, the plan or a resumption.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "../file_support.h"
#include "base/error.h"
#include "base/field.h"
#include "data/fingerprint.h"
#include "request/request.h"
#include "select/choose.h"
#include "support/document_files.h"
#include "train/trainer.h"
#include "weights/safetensors.h"

namespace thimble {
namespace {

constexpr int64_t kVocabulary = 64, kLength = 32;
constexpr const char* kConfig =
    R"({"model_type":"llama","num_key_value_heads":2,"vocab_size":64,"hidden_size":32,)"
    R"("num_hidden_layers":2,"num_attention_heads":4,"intermediate_size":48,)"
    R"("max_position_embeddings":64,"rms_norm_eps":1e-6})";

// A decoder with weights, large enough that attention is far from even.
class DocumentRuns : public testing::Test {
 protected:
  void SetUp() override {
    spill(folder_ / "config.json", kConfig);
    const Model model = build_model({.name = "hf:" + folder_.path(), .batch = 1});
    std::vector<std::vector<float>> room;
    std::vector<TensorToWrite> tensors;
    room.reserve(model.graph.values.size());
    for (const Value& value : model.graph.values) {
      if (value.role != Role::weight) continue;
      std::vector<float>& numbers = room.emplace_back();
      for (int64_t i = 0; i < value.type.elements(); ++i) {
        numbers.push_back(
            static_cast<float>(0.2 * std::sin(static_cast<double>(i * 13 + std::ssize(room)))));
      }
      tensors.push_back({value.name, value.type, std::as_bytes(std::span(numbers))});
    }
    write_safetensors(folder_ / "model.safetensors", tensors);
  }

  // Trained by plain gradient descent, at a rate at which weights are their gradients.
  static constexpr double kRate = 1e6;

  Request request(const std::string& data, Settings more = {}) const {
    Settings settings = {{"data", "documents"},    {"data-dir", data},
                         {"length", kLength},      {"batch", 1},
                         {"optimizer", "sgd"},     {"lr", kRate},
                         {"schedule", "constant"}, {"steps", 1},
                         {"threads", 1},           {"planner", "keep_all"},
                         {"momentum", 0.0},        {"weight-decay", 0.0}};
    for (auto& [name, value] : more) settings[name] = value;
    std::erase_if(settings, [](const auto& one) { return one.second.is_null(); });
    return read_request(net_, settings);
  }

  struct Ended {
    TrainResult result;
    std::map<std::string, std::vector<float>> weights;
  };
  Ended train(const std::string& data, const Settings& more = {},
              const TrainOptions& options = {}) const {
    Request asked = request(data, more);
    const auto set = open_data(asked, true);
    PlannedTraining planned = std::get<PlannedTraining>(plan_training(asked.recipe));
    const Feeder feeder(*set, feed_options(planned.recipe));
    TrainOptions used = options;
    used.fingerprint = fingerprint_of(set->info());
    Trainer trainer(planned, feeder, used);
    Ended ended = {.result = trainer.run({})};
    const Graph& graph = trainer.program().graph();
    for (size_t v = 0; v < graph.values.size(); ++v) {
      const Value& value = graph.values[v];
      if (value.producer.valid() || value.role != Role::weight) continue;
      const auto numbers = trainer.program().view<float>(make_id<ValueId>(v));
      ended.weights[value.name] = {numbers.begin(), numbers.end()};
    }
    return ended;
  }

  const TemporaryFolder folder_;
  std::string net_ = "hf:" + folder_.path();
};

// |got - expected| <= tolerance |expected|, of all gradients together; of each weight three times
// that, since sums over positions cancel in those of norms.
void expect_same(const auto& got, const auto& expected, double tolerance) {
  ASSERT_EQ(got.weights.size(), expected.weights.size());
  double whole = 0, whole_apart = 0;
  for (const auto& [name, numbers] : expected.weights) {
    double all = 0, apart = 0;
    const std::vector<float>& ours = got.weights.at(name);
    for (size_t i = 0; i < numbers.size(); ++i) {
      all += std::pow(static_cast<double>(numbers[i]), 2);
      apart += std::pow(static_cast<double>(numbers[i]) - static_cast<double>(ours[i]), 2);
    }
    EXPECT_LE(std::sqrt(apart), 3 * tolerance * std::sqrt(all)) << name;
    whole += all;
    whole_apart += apart;
  }
  EXPECT_LE(std::sqrt(whole_apart), tolerance * std::sqrt(whole));
}

// Four documents in a row, and a row each: the same loss and the same gradients. Sums in
// f32 differ in their order alone.
TEST_F(DocumentRuns, PackedIsEachAlone) {
  const TemporaryFolder data;
  write_documents(data.path(), kVocabulary, some_documents({10, 7, 12, 3}, kVocabulary),
                  some_documents({9, 4, 20, 6, 11}, kVocabulary));
  const Ended packed = train(data.path());
  const Ended alone = train(data.path(), {{"packing", "off"}, {"batch", 4}});
  EXPECT_EQ(packed.result.losses.size(), 1U);
  EXPECT_NEAR(packed.result.losses[0], alone.result.losses[0], 1e-6 * alone.result.losses[0]);
  expect_same(packed, alone, 1e-6);
  // Documents that saw each other would be another matter: so is another order of them.
  EXPECT_GT(packed.result.losses[0], 1);
}

// Perplexity of what is held out, over the tokens that count.
TEST_F(DocumentRuns, TestsAreMeansOverCountedTokens) {
  const TemporaryFolder data;
  write_documents(data.path(), kVocabulary, some_documents({10, 7, 12, 3}, kVocabulary),
                  some_documents({9, 4, 20, 6, 11}, kVocabulary));
  const Settings still = {{"lr", 1e-30}};
  Settings apart = still;
  apart["packing"] = "off";
  apart["batch"] = 2;
  const Ended packed = train(data.path(), still);
  const Ended alone = train(data.path(), apart);
  EXPECT_EQ(packed.result.test_count, 2);  // rows
  EXPECT_EQ(alone.result.test_count, 5);
  EXPECT_NEAR(packed.result.test.loss, alone.result.test.loss, 1e-6 * alone.result.test.loss);
  EXPECT_NEAR(packed.result.test["perplexity"], std::exp(alone.result.test.loss),
              1e-5 * std::exp(alone.result.test.loss));
}

// Rows count 0 to 19 tokens each: the mean is that of the step, not of its parts.
TEST_F(DocumentRuns, MicroBatchesAreTheWholeBatch) {
  const TemporaryFolder data;
  auto train_set = some_documents({32, 20, 28, 32}, kVocabulary);
  std::ranges::fill(train_set[1].counted, uint8_t{0});
  std::ranges::fill(train_set[0].counted, uint8_t{1});
  write_documents(data.path(), kVocabulary, train_set, some_documents({3}, kVocabulary));
  const Ended whole = train(data.path(), {{"batch", 4}});
  for (const int64_t rows : {1, 2, 3}) {
    const Ended parts = train(data.path(), {{"batch", 4}, {"microbatch", rows}});
    EXPECT_NEAR(parts.result.losses[0], whole.result.losses[0], 1e-6 * whole.result.losses[0]);
    expect_same(parts, whole, 1e-6);
  }
}

// A step without one token that counts changes nothing, and neither does it end the run.
TEST_F(DocumentRuns, ARowThatCountsNothingIsZero) {
  const TemporaryFolder data;
  auto some = some_documents({30, 31}, kVocabulary);
  std::ranges::fill(some.front().counted, uint8_t{0});
  write_documents(data.path(), kVocabulary, some, some);
  std::vector<double> losses = train(data.path(), {{"steps", 2}}).result.losses;
  std::ranges::sort(losses);
  ASSERT_EQ(losses.size(), 2u);
  EXPECT_EQ(losses[0], 0);
  EXPECT_GT(losses[1], 0);
}

// A loss over no token would be that of a perfect model.
TEST_F(DocumentRuns, ASplitThatCountsNothingIsRefused) {
  const TemporaryFolder data;
  const auto some = some_documents({30, 31}, kVocabulary);
  auto none = some;
  for (TestDocument& one : none) std::ranges::fill(one.counted, uint8_t{0});
  write_documents(data.path(), kVocabulary, some, none);
  EXPECT_TRUE(throws_saying<UserError>(
      [&] {
        train(data.path(), {{"steps", 1}});
      },
      "no token counts in the loss in documents 0 to 1 of"));
  write_documents(data.path(), kVocabulary, none, some);
  EXPECT_TRUE(throws_saying<UserError>(
      [&] {
        train(data.path(), {{"steps", 1}});
      },
      "/train.documents'; prepare data with answers"));
}

// The same bits whatever is recomputed, and whenever a run is taken up again.
TEST_F(DocumentRuns, PlansAndResumptionsKeepTheirBits) {
  const TemporaryFolder data;
  std::vector<int64_t> lengths;
  for (int64_t i = 0; i < 30; ++i) lengths.push_back(2 + i * 11 % 29);
  write_documents(data.path(), kVocabulary, some_documents(lengths, kVocabulary));
  const Settings usual = {
      {"optimizer", "adamw"}, {"momentum", nullptr},     {"lr", 1e-2}, {"steps", 7}, {"batch", 2},
      {"microbatch", 1},      {"lora", "rank=4,alpha=8"}};
  const Ended kept = train(data.path(), usual);
  Settings least = usual;
  least["planner"] = "sqrt_segments";
  const Ended recomputed = train(data.path(), least);
  EXPECT_EQ(recomputed.result.weights_sha256, kept.result.weights_sha256);

  const TemporaryFolder out;
  Settings saved = usual;
  saved["save-every"] = "3 steps";
  saved["no-eval"] = true;
  TrainOptions options = {.out = out / "run"};
  int steps = 0;
  options.stop = [&] { return ++steps > 4; };
  const Ended cut = train(data.path(), saved, options);
  ASSERT_NE(cut.result.weights_sha256, kept.result.weights_sha256);
  options.stop = {};
  options.resume = true;
  const Ended resumed = train(data.path(), saved, options);
  EXPECT_EQ(resumed.result.weights_sha256, kept.result.weights_sha256);
  // Another mark in the data is other data.
  auto changed = some_documents(lengths, kVocabulary);
  changed[4].counted[1] ^= 1;
  write_documents(data.path(), kVocabulary, changed);
  EXPECT_THROW(train(data.path(), saved, options), UserError);
}

// By length, where documents are not packed.
TEST_F(DocumentRuns, LengthsAreBucketsWithoutPacking) {
  const TemporaryFolder data;
  std::vector<int64_t> lengths;
  for (int64_t i = 0; i < 40; ++i) lengths.push_back(2 + i * 11 % 29);
  write_documents(data.path(), kVocabulary, some_documents(lengths, kVocabulary));
  net_ = "gpt:layers=1,heads=2,width=16,positions=rotary";
  const Ended ended = train(data.path(), {{"packing", "off"},
                                          {"batch", nullptr},
                                          {"tokens", 64},
                                          {"lengths", "8,16,32"},
                                          {"lr", 1e-3},
                                          {"steps", 10}});
  EXPECT_EQ(ended.result.losses.size(), 10U);
  for (const double loss : ended.result.losses) EXPECT_TRUE(std::isfinite(loss) && loss > 0);
}

// Rows of several documents are for models that keep them apart.
TEST_F(DocumentRuns, ModelsThatWouldMixDocumentsAreRefused) {
  const TemporaryFolder data;
  write_documents(data.path(), kVocabulary, some_documents({30, 7, 12, 3}, kVocabulary));
  const auto fault = [&](const std::string& model, Settings more) {
    more["data"] = "documents";
    more["data-dir"] = data.path();
    return message_of<UserError>([&] {
      Request asked = read_request(model, more);
      open_data(asked, true);
    });
  };
  const std::string gpt = "gpt:layers=1,heads=2,width=16,length=32";
  EXPECT_NE(fault(gpt, {}).find("choose --packing off"), std::string::npos) << fault(gpt, {});
  EXPECT_EQ(fault(gpt, {{"packing", "off"}}), "");
  EXPECT_EQ(fault(gpt + ",positions=rotary", {}), "");
  const std::string longer = fault("hf:" + folder_.path(), {{"length", 16}});
  EXPECT_NE(longer.find("has 30 tokens, and a row has 16"), std::string::npos) << longer;
  const std::string apart = fault("hf:" + folder_.path(), {{"length", 16}, {"packing", "off"}});
  EXPECT_NE(apart.find("choose --length 30"), std::string::npos) << apart;
}

}  // namespace
}  // namespace thimble
