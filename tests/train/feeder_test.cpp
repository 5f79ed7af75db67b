#include "train/feed/feeder.h"

#include <algorithm>

#include "../file_support.h"
#include "support/runs.h"
#include "train/token_model.h"

namespace thimble {
namespace {

// A program of a recipe, to be fed and not run.
class Fed {
 public:
  explicit Fed(const Recipe& recipe)
      : planned_(std::get<PlannedTraining>(plan_training(recipe))),
        arena_(planned_.backend().allocate(planned_.plan().arena)),
        program_(planned_.graph(), planned_.plan(), planned_.backend(), *arena_) {}

  const Model& model() const { return planned_.full().model; }
  Program& program() { return program_; }
  template <class T>
  std::span<T> of(std::string_view field) {
    return program_.view<T>(model().feed(field).value);
  }

 private:
  PlannedTraining planned_;
  std::unique_ptr<Memory> arena_;
  Program program_;
};

Recipe named(const ModelOptions& options) {
  Recipe recipe;
  recipe.model = options;
  recipe.on.threads = 1;
  return recipe;
}

TEST(Feeder, RefusesDataThatTheModelDoesNotRead) {
  const auto digits = open_dataset("digits");
  const Feeder feeder(*digits, {});
  Fed lstm(named({.name = "lstm:hidden=4,length=3", .batch = 2}));
  EXPECT_TRUE(throws_saying<UserError>(
      [&] { feeder.check(lstm.model()); },
      "lstm reads 'sequence' f32[3,50], 'label' i32 below 10, but the data set 'digits' has "
      "'pixels' u8[8,8,1], 'label' i32 below 10: there is no 'sequence'"));
  Fed larger(named({.name = "mlp:hidden=4", .batch = 2, .image = {9, 8, 1}}));
  EXPECT_TRUE(throws_saying<UserError>([&] { feeder.check(larger.model()); }, "u8[9,8,1]",
                                       "'pixels' is of another shape"));
  Fed fewer(named({.name = "mlp:hidden=4", .batch = 2, .classes = 9}));
  EXPECT_TRUE(
      throws_saying<UserError>([&] { feeder.check(fewer.model()); }, "'label' may be 9 or more"));
  Fed right(named({.name = "mlp:hidden=4", .batch = 2, .classes = 12}));
  EXPECT_NO_THROW(feeder.check(right.model()));
}

TEST(Feeder, RefusesDataThatDoNotStateWhatTheModelKeeps) {
  class Bare final : public Dataset {
   public:
    const DatasetInfo& info() const override { return info_; }
    void read(Split, int64_t, std::span<const RecordPart>) const override {}

   private:
    DatasetInfo info_ = {.name = "bare",
                         .train_count = 8,
                         .test_count = 1,
                         .fields = {{.name = "pixels", .dtype = DType::u8, .shape = {8, 8, 1}},
                                    {.name = "label", .dtype = DType::i32, .limit = 10}}};
  };
  const Bare bare;
  Fed mlp(named({.name = "mlp:hidden=4", .batch = 2}));
  EXPECT_TRUE(throws_saying<UserError>([&] { Feeder(bare, {}).check(mlp.model()); }, "'pixel.mean'",
                                       "'bare' does not state"));
}

TEST(Feeder, PadsRecordsThatAreShorter) {
  const Tokens data({3, 5}, 6, 2, 2);
  const Feeder feeder(data, {});
  Fed fed(token_recipe({5}, 2));
  EXPECT_EQ(feeder.fill_training(fed.program(), fed.model(), {.step = 0, .batch = 2}), 8);
  EXPECT_EQ(fed.program().view<float>(fed.model().loss_normalizer)[0], 1.0f / 8);
  const auto tokens = fed.of<int32_t>("tokens"), targets = fed.of<int32_t>("targets");
  for (size_t row = 0; row < 2; ++row) {
    const bool is_short = tokens[row * 5 + 3] == 0;
    for (size_t i = 0; i < 5; ++i) {
      const bool padding = is_short && i >= 3;
      EXPECT_EQ(tokens[row * 5 + i] == 0, padding);
      EXPECT_EQ(targets[row * 5 + i] == -1, padding);
    }
  }
  EXPECT_NE(tokens[3] == 0, tokens[8] == 0);  // one of each
  EXPECT_EQ(feeder.longest({.step = 0, .batch = 2}, 2), 5);

  Fed narrow(token_recipe({4}, 2));
  EXPECT_TRUE(throws_saying<UserError>(
      [&] { feeder.fill_training(narrow.program(), narrow.model(), {.step = 0, .batch = 2}); },
      "has 5 entries of 'tokens'", "room for 4"));
}

TEST(Feeder, RowsBeyondTheLastTestRecordArePadding) {
  const auto digits = open_dataset("digits");
  const Feeder feeder(*digits, {});
  Fed fed(named({.name = "mlp:hidden=4", .batch = 10}));
  const TestRows rows = feeder.fill_test(fed.program(), fed.model(), 350);
  EXPECT_EQ(rows.rows, 5);
  EXPECT_EQ(rows.counted, 5);
  EXPECT_EQ(fed.program().view<float>(fed.model().loss_normalizer)[0], 1.0f / 5);
  for (size_t row = 0; row < 10; ++row) {
    EXPECT_EQ(fed.of<int32_t>("label")[row] == -1, row >= 5);
    const auto pixels = fed.of<uint8_t>("pixels").subspan(row * 64, 64);
    EXPECT_EQ(std::ranges::all_of(pixels, [](uint8_t p) { return p == 0; }), row >= 5);
  }
}

TEST(Feeder, ImagesAreCroppedWhereverTheyComeFrom) {
  const auto digits = open_dataset("digits");
  Fed fed(named({.name = "mlp:hidden=4", .batch = 64}));
  const auto pixels = [&](bool augment) {
    const Feeder feeder(*digits, {.seed = 3, .augment = augment, .crop_pad = 2});
    feeder.fill_training(fed.program(), fed.model(), {.step = 0, .batch = 64});
    const auto view = fed.of<uint8_t>("pixels");
    return std::vector<uint8_t>(view.begin(), view.end());
  };
  EXPECT_NE(pixels(true), pixels(false));
  EXPECT_EQ(pixels(true), pixels(true));
}

TEST(Feeder, ThreadsFillWhatOneWould) {
  Fed fed(named({.name = "mlp:hidden=4", .batch = 48, .image = {224, 224, 3}}));
  const auto data = open_dataset("generated", {.wanted = fields_read(fed.model())});
  const auto filled = [&](bool on_threads) {
    const Feeder feeder(*data, {.seed = 3, .on_threads = on_threads});
    std::ranges::fill(fed.of<uint8_t>("pixels"), uint8_t{0});
    feeder.fill_training(fed.program(), fed.model(), {.step = 2, .batch = 48});
    const auto pixels = fed.of<uint8_t>("pixels");
    const auto labels = fed.of<int32_t>("label");
    return std::pair(std::vector<uint8_t>(pixels.begin(), pixels.end()),
                     std::vector<int32_t>(labels.begin(), labels.end()));
  };
  EXPECT_EQ(filled(true), filled(false));
}

TEST(Feeder, WhatFailsOnAThreadIsThrown) {
  class Failing final : public Dataset {
   public:
    explicit Failing(const Dataset& whole) : whole_(whole) {}
    const DatasetInfo& info() const override { return whole_.info(); }
    void read(Split, int64_t, std::span<const RecordPart>) const override {
      user_error("the file is gone");
    }

   private:
    const Dataset& whole_;
  };
  Fed fed(named({.name = "mlp:hidden=4", .batch = 48, .image = {224, 224, 3}}));
  const auto whole = open_dataset("generated", {.wanted = fields_read(fed.model())});
  const Failing failing(*whole);
  const Feeder feeder(failing, {.on_threads = true});
  EXPECT_TRUE(throws_saying<UserError>(
      [&] { feeder.fill_training(fed.program(), fed.model(), {.step = 0, .batch = 48}); },
      "the file is gone"));
}

TEST(RecordFields, SayWhatDoesNotMatch) {
  const RecordField offered = {
      .name = "tokens", .dtype = DType::i32, .shape = {8}, .limit = 100, .variable = true};
  RecordField wanted = offered;
  const auto mismatch = [&] { return find_mismatch({&wanted, 1}, {&offered, 1}); };
  EXPECT_EQ(mismatch(), std::nullopt);
  for (const int64_t length : {5, 9}) {  // records that are longer are others' to read
    wanted.shape = {length};
    EXPECT_EQ(mismatch(), std::nullopt);
  }
  wanted.shape = {8, 1};
  EXPECT_EQ(mismatch(), "'tokens' is of another shape");
  wanted.shape = {8};
  wanted.dtype = DType::i64;
  EXPECT_EQ(mismatch(), "'tokens' is of another type");
  wanted = offered;
  wanted.limit = 99;
  EXPECT_EQ(mismatch(), "'tokens' may be 99 or more");
  wanted = offered;
  wanted.strided = true;
  EXPECT_NE(mismatch(), std::nullopt);
  wanted = offered;
  wanted.name = "words";
  EXPECT_EQ(mismatch(), "there is no 'words'");
}

}  // namespace
}  // namespace thimble
