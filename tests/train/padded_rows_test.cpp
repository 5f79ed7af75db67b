// The last batch of a test is filled up with rows that stand for no record. They count for nothing,
// whatever the loss is: the same weights have the same figures in batches of any size.
#include <gtest/gtest.h>

#include <memory>

#include "../file_support.h"
#include "pipeline/pipeline.h"
#include "request/request.h"
#include "select/choose.h"
#include "train/trainer.h"

namespace thimble {
namespace {

struct Tested {
  Figures figures;
  int64_t count = 0;
};

// A run of 50 test records, its weights from a file where one is named.
class TestedRun {
 public:
  TestedRun(const std::string& model, Settings settings, const std::string& weights = {}) {
    settings.merge(Settings{{"steps", 1}, {"threads", 1}, {"batch", 16}});
    const Recipe recipe = read_request(model, settings).recipe;
    planned_ = std::make_unique<PlannedTraining>(std::get<PlannedTraining>(plan_training(recipe)));
    data_ = open_dataset(recipe.data.name, {.wanted = fields_read(planned_->full().model),
                                            .train_count = 320,
                                            .test_count = 50,
                                            .seed = recipe.seed});
    feeder_ = std::make_unique<Feeder>(*data_, feed_options(recipe));
    trainer_ = std::make_unique<Trainer>(*planned_, *feeder_, TrainOptions{.weights = weights});
  }

  Tested test() {
    Tested result;
    result.figures = trainer_->evaluate(*feeder_, &result.count).value();
    return result;
  }
  Trainer& trainer() { return *trainer_; }

 private:
  std::unique_ptr<PlannedTraining> planned_;
  std::unique_ptr<Dataset> data_;
  std::unique_ptr<Feeder> feeder_;
  std::unique_ptr<Trainer> trainer_;
};

TEST(PaddedRows, CountForNothing) {
  const std::pair<const char*, Settings> cases[] = {
      {"lstm:layers=1,hidden=8,length=6,features=2,predicts=number", {{"data", "adding"}}},
      {"lstm:layers=1,hidden=8,length=6,features=2,predicts=number",
       {{"data", "adding"}, {"precision", "bf16"}}},
      {"lstm:layers=1,hidden=8,length=6", {{"data", "sequences"}}},
      {"lstm:layers=1,hidden=8,length=6,reads=tokens,predicts=targets", {{"data", "copy"}}},
      {"lstm:layers=1,hidden=8,length=6,reads=tokens,predicts=targets", {{"data", "noise"}}},
      {"mlp:hidden=8", {{"data", "digits"}}},
  };
  for (const auto& [model, settings] : cases) {
    SCOPED_TRACE(model);
    const TemporaryFolder folder;
    const std::string weights = folder / "w.safetensors";
    TestedRun(model, settings).trainer().export_weights(weights);
    std::vector<Tested> all;
    for (const int64_t batch : {1, 7, 16, 64}) {
      Settings sized = settings;
      sized["batch"] = batch;
      all.push_back(TestedRun(model, sized, weights).test());
    }
    for (const Tested& one : all) {
      EXPECT_EQ(one.count, all[0].count);
      // The same rows in another grouping: sums round differently.
      EXPECT_NEAR(one.figures.loss, all[0].figures.loss, 1e-5 * all[0].figures.loss);
      for (size_t m = 0; m < one.figures.metrics.size(); ++m) {
        const double expected = all[0].figures.metrics[m].value;
        EXPECT_NEAR(one.figures.metrics[m].value, expected, 1e-5 * expected + 1e-12);
      }
    }
  }
}

}  // namespace
}  // namespace thimble
