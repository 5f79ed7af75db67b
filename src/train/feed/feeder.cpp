#include "train/feed/feeder.h"

#include <algorithm>
#include <array>
#include <exception>
#include <mutex>

#include "base/error.h"
#include "base/host/parallel.h"
#include "data/marked_labels.h"
#include "data/order/shuffle.h"

namespace thimble {
namespace {

constexpr size_t kMostFields = 16;

// Row `row` of a feed's value, as its field's entries: as many as there is room for. Only the axis
// in front of the rows, if any, can be the record's first.
RecordPart row_of(Program& program, const Feed& feed, const RecordField& field, int64_t row) {
  const Shape& shape = program.graph()[feed.value].type.shape;
  const int64_t entry = entry_bytes(field);
  std::byte* const data = program.bytes_of(feed.value).data();
  if (feed.row_axis > 0) return {data + row * entry, entry, shape[feed.row_axis] * entry, shape[0]};
  const int64_t entries = shape.rank() == 1 ? 1 : shape[1];
  return {data + row * entries * entry, entry, entry, entries};
}

// Entries of a part from `begin` on.
void pad(const RecordPart& part, int64_t begin, const RecordField& field) {
  with_any_type(field.dtype, [&]<class T>(TypeTag<T>) {
    for (int64_t i = begin; i < part.entries; ++i) {
      std::ranges::fill(part.at<T>(i), static_cast<T>(field.pad));
    }
  });
}

// Of a batch without one label that counts, the loss and its gradients are 0.
float normalizer_of(double counted) {
  return counted == 0 ? 0.0f : 1.0f / static_cast<float>(counted);
}

// fill(begin, end) for all rows, on threads. The first failure is thrown when all have ended.
template <class Fill>
void fill_on_threads(int64_t rows, int64_t of_a_thread, const Fill& fill) {
  std::mutex mutex;
  std::exception_ptr failed;
  for_ranges(rows, of_a_thread, [&](int64_t begin, int64_t end) {
    try {
      fill(begin, end);
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!failed) failed = std::current_exception();
    }
  });
  if (failed) std::rethrow_exception(failed);
}

}  // namespace

FeedOptions feed_options(const Recipe& recipe) {
  FeedOptions options = {.seed = recipe.seed,
                         .augment = recipe.data.augment,
                         .crop_pad = recipe.data.crop_pad,
                         .flip = recipe.data.flip,
                         .on_threads = device_traits(recipe.device).has_memory};
  for (const StepShape& shape : token_batches(recipe)) {
    options.buckets.push_back({.length = shape.length, .rows = shape.rows});
  }
  return options;
}

Feeder::Feeder(const Dataset& data, const FeedOptions& options) : data_(data), options_(options) {
  const auto& fields = data.info().fields;
  user_check(fields.size() <= kMostFields, "records of '{}' have {} fields; {} are the most",
             data.info().name, fields.size(), kMostFields);
  variable_ = std::ranges::any_of(fields, &RecordField::variable);
  if (!options_.buckets.empty()) order_.emplace(data, options_.buckets, options_.seed);
}

int64_t Feeder::steps_per_epoch(int64_t batch) const {
  return order_ ? order_->steps_per_epoch() : std::max<int64_t>(1, train_count() / batch);
}

const Bucket* Feeder::bucket(int64_t step) const {
  return order_ ? &order_->bucket(step) : nullptr;
}

void Feeder::check(const Model& model) const {
  const DatasetInfo& info = data_.info();
  check_match(model.options.name, fields_read(model), info.name, info.fields);
  for (const Feed& feed : model.feeds) {
    internal_check(feed.row_axis <= 1, "rows are the first or the second axis of a batch");
    user_check(!options_.augment || !info.field(feed.field).image || feed.staging.valid(),
               "{} has no room to change its '{}' on their way; leave --augment out",
               model.options.name, feed.field);
  }
  user_check(!model.carry_state.valid() || !order_,
             "rows of {} go on where those of the step before ended, which batches of like lengths "
             "do not; leave --tokens or --carried-state out",
             model.options.name);
  const RecordField* const counts = find_field(info.fields, model.loss_counts);
  user_check(model.loss_counts.empty() || counts != nullptr,
             "the loss of {} is a mean over '{}', which the data set '{}' does not have",
             model.options.name, model.loss_counts, info.name);
  for (const ValueId value : model.from_data) {
    const Value& wanted = model.graph[value];
    const auto stated = std::ranges::find(info.constants, wanted.name, &DataConstant::name);
    user_check(
        stated != info.constants.end() && std::ssize(stated->numbers) == wanted.type.elements(),
        "{} wants {} numbers '{}' of its data, which '{}' does not state; choose another "
        "--data (`thimble list data`)",
        model.options.name, wanted.type.elements(), wanted.name, info.name);
  }
}

void Feeder::describe(Program& program, const Model& model) const {
  for (const ValueId value : model.from_data) {
    const HostMapping mapping = program.map_to_host(value, HostMapping::Use::write);
    const std::vector<float>& numbers = data_.info().constant(model.graph[value].name);
    std::ranges::copy(numbers, mapping.as<float>().begin());
  }
}

// Rows that do not fill a batch at the end of an epoch wait for the next order.
Feeder::Place Feeder::training_place(const TrainingRows& rows, int64_t row, bool in_order) const {
  if (order_) {
    const BucketOrder::Place place = order_->record(rows.step, rows.first + row);
    return {Split::train, place.index, place.epoch, -1};
  }
  const int64_t per_epoch = train_count() / rows.batch;
  const auto epoch = static_cast<uint64_t>(rows.step / per_epoch);
  if (in_order) {
    return {Split::train, (rows.first + row) * per_epoch + rows.step % per_epoch, epoch, -1};
  }
  const int64_t position = rows.step % per_epoch * rows.batch + rows.first + row;
  return {Split::train, permuted(position, train_count(), options_.seed, epoch), epoch,
          rows.step * rows.batch + rows.first + row};
}

void Feeder::read(const Place& place, int64_t batch, std::span<const RecordPart> parts) const {
  if (!data_.info().decoded || place.position < 0) {
    data_.read_in_epoch(place.split, place.index, place.epoch, parts);
    return;
  }
  if (ahead_ == nullptr || (place.split == Split::train && batch != ahead_batch_)) {
    ahead_batch_ = batch;
    const auto order = [this, batch](Split split, int64_t position) -> int64_t {
      if (split == Split::test) return position < test_count() ? position : -1;
      return training_place({.step = position / batch, .batch = batch}, position % batch).index;
    };
    ahead_ = std::make_unique<ReadAhead>(data_, order, 2 * batch);
  }
  ahead_->read(place.split, place.position, parts);
}

void Feeder::fill_row(Program& program, const Model& model, int64_t row, const Place& place,
                      int64_t batch) const {
  const std::vector<RecordField>& fields = data_.info().fields;
  std::array<RecordPart, kMostFields> parts{};
  std::array<RecordPart, kMostFields> changed{};  // where images go when they have been cropped
  for (const Feed& feed : model.feeds) {
    const RecordField& field = data_.info().field(feed.field);
    const auto at = static_cast<size_t>(&field - fields.data());
    RecordPart& part = parts[at];
    part = row_of(program, feed, field, row);
    if (options_.augment && field.image && place.split == Split::train) {
      changed[at] = part;
      part.data = program.bytes_of(feed.staging).data();
    }
    if (!field.variable) continue;
    const int64_t length = data_.length(place.split, place.index, at);
    user_check(length <= part.entries,
               "record {} of '{}' has {} entries of '{}', and {} has room for {}", place.index,
               data_.info().name, length, field.name, model.options.name, part.entries);
    pad(part, length, field);
    part.entries = length;
  }
  read(place, batch, std::span(parts).first(fields.size()));
  for (size_t at = 0; at < fields.size(); ++at) {
    if (changed[at].data == nullptr) continue;
    const Shape& image = fields[at].shape;
    // Reflection stays inside the image.
    const int64_t most = std::min(image[0], image[1]) - 1;
    const CropFlip crop = {.pad = std::min<int64_t>(options_.crop_pad, most),
                           .flip = options_.flip};
    random_crop_flip(parts[at].all<uint8_t>(), changed[at].all<uint8_t>(), image, crop,
                     options_.seed, place.epoch, place.index);
  }
}

void Feeder::pad_row(Program& program, const Model& model, int64_t row) const {
  for (const Feed& feed : model.feeds) {
    const RecordField& field = data_.info().field(feed.field);
    pad(row_of(program, feed, field, row), 0, field);
  }
}

double Feeder::counted(const Model& model, const Place& place) const {
  if (model.loss_counts.empty()) return 1;
  if (const auto* const marked = dynamic_cast<const MarkedLabels*>(&data_)) {
    return static_cast<double>(marked->counted(place.split, place.index));
  }
  const RecordField& field = data_.info().field(model.loss_counts);
  const auto at = static_cast<size_t>(&field - data_.info().fields.data());
  return static_cast<double>(data_.length(place.split, place.index, at));
}

// Images that are cropped share one place on their way, and what is read ahead has threads already.
int64_t Feeder::rows_of_a_thread(const Model& model) const {
  constexpr int64_t kBytes = 1 << 20;
  if (!options_.on_threads || options_.augment || data_.info().decoded) return 0;
  int64_t bytes = 0;
  for (const Feed& feed : model.feeds) bytes += model.graph[feed.value].type.bytes().count;
  return std::max<int64_t>(1, kBytes * model.rows() / std::max<int64_t>(bytes, 1));
}

double Feeder::fill_training(Program& program, const Model& model, const TrainingRows& rows) const {
  const bool in_order = model.carry_state.valid();
  const auto fill = [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      fill_row(program, model, row, training_place(rows, row, in_order), rows.batch);
    }
  };
  if (const int64_t of_a_thread = rows_of_a_thread(model); of_a_thread > 0) {
    fill_on_threads(model.rows(), of_a_thread, fill);
  } else {
    fill(0, model.rows());
  }
  labels_.check(program, model, rows);
  if (in_order) {
    const bool begins = rows.step % steps_per_epoch(rows.batch) == 0;
    program.view<float>(model.carry_state)[0] = begins ? 0.0f : 1.0f;
  }
  double count = model.loss_counts.empty() ? static_cast<double>(rows.batch) : rows.counted;
  if (count == 0) {
    const TrainingRows whole = {.step = rows.step, .batch = rows.batch};
    for (int64_t r = 0; r < rows.batch; ++r) count += counted(model, training_place(whole, r));
  }
  program.view<float>(model.loss_normalizer)[0] = normalizer_of(count);
  return count;
}

TestRows Feeder::fill_test(Program& program, const Model& model, int64_t first) const {
  TestRows filled = {std::min(model.rows(), test_count() - first), 0};
  for (int64_t row = 0; row < model.rows(); ++row) {
    if (row >= filled.rows) {
      pad_row(program, model, row);
      continue;
    }
    const Place place = {Split::test, first + row, 0, first + row};
    fill_row(program, model, row, place, model.rows());
    filled.counted += counted(model, place);
  }
  program.view<float>(model.loss_normalizer)[0] = normalizer_of(filled.counted);
  return filled;
}

int64_t Feeder::longest(const TrainingRows& rows, int64_t count) const {
  int64_t longest = 0;
  for (int64_t r = 0; r < count && variable_; ++r) {
    const Place place = training_place(rows, r);
    longest = std::max(longest, record_length(data_, place.split, place.index));
  }
  return longest;
}

int64_t Feeder::longest_test(int64_t first, int64_t count) const {
  int64_t longest = 0;
  for (int64_t r = first; r < std::min(first + count, test_count()) && variable_; ++r) {
    longest = std::max(longest, record_length(data_, Split::test, r));
  }
  return longest;
}

}  // namespace thimble
