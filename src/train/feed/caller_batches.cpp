#include "train/feed/caller_batches.h"

#include <algorithm>
#include <array>

#include "base/error.h"

namespace thimble {
namespace {

constexpr size_t kMostFeeds = 64;

// Records that a loss counts by one of their fields have all of its entries.
double entries_counted(const Model& model) {
  if (model.loss_counts.empty()) return 1;
  const Feed& feed = model.feed(model.loss_counts);
  const Shape& shape = model.graph[feed.value].type.shape;
  return shape.rank() == 1 ? 1 : static_cast<double>(shape[feed.row_axis == 0 ? 1 : 0]);
}

// The contents of rows that are no records: of classes and targets, none of them.
double padding_of(const Model& model, const Feed& feed) {
  const TensorType& type = model.graph[feed.value].type;
  const bool target = type.shape.rank() == 1 || feed.field == model.loss_counts;
  return target && !is_floating(type.dtype) && type.dtype != DType::u8 ? -1 : 0;
}

// Rows from `begin` on.
void pad(Program& program, const Model& model, int64_t begin) {
  for (const Feed& feed : model.feeds) {
    const TensorType& type = model.graph[feed.value].type;
    const int64_t rows = type.shape[feed.row_axis];
    const int64_t before = feed.row_axis == 0 ? 1 : type.shape[0];
    const int64_t row = type.elements() / rows / before;  // elements in one piece
    with_any_type(type.dtype, [&]<class T>(TypeTag<T>) {
      const std::span<T> all = program.view<T>(feed.value);
      for (int64_t i = 0; i < before; ++i) {
        const auto from = all.begin() + (i * rows + begin) * row;
        std::fill(from, from + (rows - begin) * row, static_cast<T>(padding_of(model, feed)));
      }
    });
  }
}

// Whole numbers that a kernel looks up must be there.
void check_range(const BatchField& field, double least, std::string_view model) {
  if (field.type.dtype != DType::i32 || (field.limit == 0 && !field.ignored)) return;
  const std::span numbers(reinterpret_cast<const int32_t*>(field.data),
                          static_cast<size_t>(field.type.elements()));
  for (const int32_t number : numbers) {
    if (field.ignored && number == *field.ignored) continue;
    user_check(field.limit == 0 || (number >= least && number < field.limit),
               "a '{}' is {}, and {} reads whole numbers from 0 to {}{} there", *field.name, number,
               model, field.limit - 1,
               field.ignored ? fmt::format(" (or {}, which does not count)", *field.ignored) : "");
  }
}

}  // namespace

void CallerBatches::check(const Model& model) const {
  user_check(model.feeds.size() <= kMostFeeds, "{} reads {} fields; {} are the most",
             model.options.name, model.feeds.size(), kMostFeeds);
  for (const ValueId value : model.from_data) {
    const Value& wanted = model.graph[value];
    const auto stated = std::ranges::find(data_.constants, wanted.name, &DataConstant::name);
    user_check(
        stated != data_.constants.end() && std::ssize(stated->numbers) == wanted.type.elements(),
        "{} wants {} numbers '{}' of its data; state them with the data", model.options.name,
        wanted.type.elements(), wanted.name);
  }
}

void CallerBatches::describe(Program& program, const Model& model) const {
  for (const ValueId value : model.from_data) {
    const HostMapping mapping = program.map_to_host(value, HostMapping::Use::write);
    const auto stated =
        std::ranges::find(data_.constants, model.graph[value].name, &DataConstant::name);
    std::ranges::copy(stated->numbers, mapping.as<float>().begin());
  }
}

int64_t CallerBatches::fill(Program& program, const Model& model, BatchToFill batch) const {
  std::array<BatchField, kMostFeeds> fields;
  for (size_t i = 0; i < model.feeds.size(); ++i) {
    const Feed& feed = model.feeds[i];
    fields[i] = {.name = &feed.field,
                 .type = model.graph[feed.value].type,
                 .row_axis = feed.row_axis,
                 .limit = feed.limit,
                 .ignored = feed.ignored,
                 .data = program.bytes_of(feed.value).data()};
  }
  batch.rows = model.rows();
  batch.fields = std::span(fields).first(model.feeds.size());
  const int64_t filled = data_.fill(batch);
  internal_check(filled >= 0 && filled <= model.rows(), "more rows than there is room for");
  if (filled < model.rows()) pad(program, model, filled);
  for (size_t i = 0; i < model.feeds.size() && filled > 0; ++i) {
    check_range(fields[i], padding_of(model, model.feeds[i]), model.options.name);
  }
  return filled;
}

double CallerBatches::fill_training(Program& program, const Model& model,
                                    const TrainingRows& rows) const {
  const int64_t filled =
      fill(program, model,
           {.split = Split::train, .step = rows.step, .batch = rows.batch, .first = rows.first});
  user_check(filled == model.rows(),
             "the data end in step {}: {} of the {} rows of '{}' were filled; have more, or ask "
             "for fewer steps",
             rows.step + 1, rows.first + filled, rows.batch, model.options.name);
  labels_.check(program, model, rows);
  if (model.carry_state.valid()) {
    program.view<float>(model.carry_state)[0] =
        rows.step % data_.steps_per_epoch == 0 ? 0.0f : 1.0f;
  }
  const double count = static_cast<double>(rows.batch) * entries_counted(model);
  program.view<float>(model.loss_normalizer)[0] = 1.0f / static_cast<float>(count);
  return count;
}

TestRows CallerBatches::fill_test(Program& program, const Model& model, int64_t first) const {
  TestRows filled;
  filled.rows = fill(program, model, {.split = Split::test, .first = first});
  if (filled.rows == 0) return filled;
  if (filled.rows < model.rows() && model.whole_batches) {
    user_check(first > 0, "tests of {} take {} rows at a time, and there are {}; have more",
               model.options.name, model.rows(), filled.rows);
    return {};  // the rest waits for more
  }
  filled.counted = static_cast<double>(filled.rows) * entries_counted(model);
  program.view<float>(model.loss_normalizer)[0] = 1.0f / static_cast<float>(filled.counted);
  return filled;
}

}  // namespace thimble
