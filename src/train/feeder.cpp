#include "train/feeder.h"

#include <algorithm>

#include "base/error.h"
#include "data/augment.h"
#include "data/generated.h"
#include "data/shuffle.h"

namespace thimble {
namespace {

constexpr int32_t kDoesNotCount = -1;

// The epoch of some rows and the position of the first of them in that epoch. Rows that do not
// fill a batch at the end of an epoch wait for the next order.
struct RowPosition {
  uint64_t epoch;
  int64_t first;
};

RowPosition position_of(const TrainingRows& rows, int64_t count) {
  const int64_t per_epoch = count / rows.batch;
  return {static_cast<uint64_t>(rows.step / per_epoch),
          rows.step % per_epoch * rows.batch + rows.first};
}

void set_normalizer(Program& program, const Model& model, int64_t rows) {
  program.view<float>(model.normalizer)[0] = 1.0f / static_cast<float>(rows);
}

class ImageFeeder final : public Feeder {
 public:
  ImageFeeder(Dataset& dataset, const FeedOptions& options) : data_(dataset), options_(options) {
    const Shape& image = data_.info().image;
    const int64_t room = std::min(image[0], image[1]) - 1;  // reflection stays inside the image
    crop_.pad = std::min<int64_t>(options.crop_pad, room);
    crop_.flip = options.flip;
  }

  int64_t train_count() const override { return data_.info().train_count; }
  int64_t test_count() const override { return data_.info().test_count; }

  void fill_training(Program& program, const Model& model, const TrainingRows& rows) override {
    const std::span<int32_t> labels = program.view<int32_t>(model.labels);
    const auto [epoch, first] = position_of(rows, train_count());
    const std::span<uint8_t> staging = program.view<uint8_t>(model.staging);
    for (int64_t row = 0; row < model.options.batch; ++row) {
      const int64_t index = permuted(first + row, train_count(), options_.seed, epoch);
      const std::span<uint8_t> image = row_of(program, model, row);
      int32_t& label = labels[static_cast<size_t>(row)];
      if (options_.augment) {
        data_.read(Split::train, index, staging, label);
        random_crop_flip(staging, image, data_.info().image, crop_, options_.seed, epoch, index);
      } else {
        data_.read(Split::train, index, image, label);
      }
    }
    set_normalizer(program, model, rows.batch);
  }

  int64_t fill_test(Program& program, const Model& model, int64_t first) override {
    const std::span<int32_t> labels = program.view<int32_t>(model.labels);
    const int64_t batch = static_cast<int64_t>(labels.size());
    const int64_t rows = std::min(batch, test_count() - first);
    for (int64_t row = 0; row < batch; ++row) {
      int32_t& label = labels[static_cast<size_t>(row)];
      const std::span<uint8_t> image = row_of(program, model, row);
      if (row < rows) {
        data_.read(Split::test, first + row, image, label);
      } else {
        std::fill(image.begin(), image.end(), uint8_t{0});
        label = kDoesNotCount;
      }
    }
    set_normalizer(program, model, rows);
    return rows;
  }

  void describe(Program& program, const Model& model) override {
    const Loan mean_loan = program.borrow(model.pixel_mean, Loan::Use::write);
    const Loan inverse_loan = program.borrow(model.pixel_inverse_deviation, Loan::Use::write);
    const std::span<float> mean = mean_loan.as<float>(), inverse = inverse_loan.as<float>();
    for (size_t c = 0; c < mean.size(); ++c) {
      mean[c] = data_.info().mean[c];
      inverse[c] = 1 / data_.info().stddev[c];
    }
  }

 private:
  std::span<uint8_t> row_of(Program& program, const Model& model, int64_t row) const {
    const size_t size = static_cast<size_t>(data_.info().image.elements());
    return program.view<uint8_t>(model.pixels).subspan(static_cast<size_t>(row) * size, size);
  }

  Dataset& data_;
  FeedOptions options_;
  CropFlip crop_;
};

class SequenceFeeder final : public Feeder {
 public:
  SequenceFeeder(const FeedOptions& options, int64_t train_count, int64_t test_count)
      : options_(options), train_count_(train_count), test_count_(test_count) {}

  int64_t train_count() const override { return train_count_; }
  int64_t test_count() const override { return test_count_; }

  void fill_training(Program& program, const Model& model, const TrainingRows& rows) override {
    const auto [epoch, first] = position_of(rows, train_count_);
    for (int64_t row = 0; row < model.options.batch; ++row) {
      const int64_t index = permuted(first + row, train_count_, options_.seed, epoch);
      fill_row(program, model, Split::train, row, index);
    }
    set_normalizer(program, model, rows.batch);
  }

  int64_t fill_test(Program& program, const Model& model, int64_t first) override {
    const int64_t batch = model.options.batch;
    const int64_t rows = std::min(batch, test_count_ - first);
    for (int64_t row = 0; row < batch; ++row) {
      fill_row(program, model, Split::test, row, first + row);
      if (row >= rows) {
        program.view<int32_t>(model.labels)[static_cast<size_t>(row)] = kDoesNotCount;
      }
    }
    set_normalizer(program, model, rows);
    return rows;
  }

  void describe(Program&, const Model&) override {}

 private:
  void fill_row(Program& program, const Model& model, Split split, int64_t row, int64_t index) {
    const Shape& shape = program.graph()[model.sequence].type.shape;  // [T,N,I]
    const std::span<float> batch = program.view<float>(model.sequence);
    const SequenceSpec spec = {shape[0], shape[2], model.options.classes};
    generated_sequence(spec, options_.seed, split, index,
                       batch.subspan(static_cast<size_t>(row * shape[2])), shape[1] * shape[2],
                       program.view<int32_t>(model.labels)[static_cast<size_t>(row)]);
  }

  FeedOptions options_;
  int64_t train_count_;
  int64_t test_count_;
};

}  // namespace

std::unique_ptr<Feeder> make_image_feeder(Dataset& dataset, const FeedOptions& options) {
  return std::make_unique<ImageFeeder>(dataset, options);
}

std::unique_ptr<Feeder> make_sequence_feeder(const FeedOptions& options, int64_t train_count,
                                             int64_t test_count) {
  return std::make_unique<SequenceFeeder>(options, train_count, test_count);
}

}  // namespace thimble
