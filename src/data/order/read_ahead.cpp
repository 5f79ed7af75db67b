#include "data/order/read_ahead.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/error.h"

namespace thimble {
namespace {

constexpr int64_t kMostReaders = 8;

int64_t reader_count(int64_t slots) {
  const int64_t cores = std::max<int64_t>(1, std::thread::hardware_concurrency());
  return std::clamp<int64_t>(std::min(cores, slots), 1, kMostReaders);
}

}  // namespace

ReadAhead::ReadAhead(const Dataset& data, Order order, int64_t records)
    : data_(data), order_(std::move(order)) {
  int64_t end = 0;
  for (const RecordField& field : data.info().fields) {
    internal_check(!field.variable, "records read ahead are all of one size");
    offsets_.push_back(end);
    end += field.shape.elements() * size_of(field.dtype);
    end = (end + 7) / 8 * 8;
  }
  offsets_.push_back(end);
  const int64_t most = std::max<int64_t>(1, kMostRoom / std::max<int64_t>(1, end));
  slots_.resize(static_cast<size_t>(std::clamp<int64_t>(records, 1, most)));
  for (Slot& slot : slots_) slot.bytes.resize(static_cast<size_t>(end));
  const int64_t readers = reader_count(std::ssize(slots_));
  for (int64_t i = 0; i < readers; ++i) {
    readers_.emplace_back([this](const std::stop_token& stop) { work(stop); });
  }
}

ReadAhead::~ReadAhead() {
  for (std::jthread& reader : readers_) reader.request_stop();
  changed_.notify_all();
}

void ReadAhead::read_into(Slot& slot, Split split, int64_t position) const {
  const std::vector<RecordField>& fields = data_.info().fields;
  std::vector<RecordPart> parts;
  for (size_t f = 0; f < fields.size(); ++f) {
    const int64_t entries = fields[f].shape.rank() == 0 ? 1 : fields[f].shape[0];
    const int64_t entry = entry_bytes(fields[f]);
    parts.push_back({slot.bytes.data() + offsets_[f], entry, entry, entries});
  }
  data_.read(split, order_(split, position), parts);
}

void ReadAhead::work(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (true) {
    const bool more =
        changed_.wait(lock, stop, [&] { return !ended_ && next_ < asked_ + std::ssize(slots_); });
    if (!more) return;
    const int64_t position = next_++;
    const Split split = split_;
    if (order_(split, position) < 0) {
      ended_ = true;
      continue;
    }
    Slot& slot = slot_of(position);
    slot.state = State::busy;
    ++busy_;
    lock.unlock();
    std::exception_ptr failed;
    try {
      read_into(slot, split, position);
    } catch (...) {
      failed = std::current_exception();
    }
    lock.lock();
    slot.state = State::ready;
    slot.failed = failed;
    --busy_;
    changed_.notify_all();
  }
}

// Whatever was read for another place is dropped.
void ReadAhead::begin_at(Split split, int64_t position, std::unique_lock<std::mutex>& lock) {
  ended_ = true;  // nothing new is begun meanwhile
  changed_.wait(lock, [&] { return busy_ == 0; });
  for (Slot& slot : slots_) slot.state = State::free;
  split_ = split;
  asked_ = next_ = position;
  ended_ = false;
  changed_.notify_all();
}

void ReadAhead::read(Split split, int64_t position, std::span<const RecordPart> parts) {
  std::unique_lock lock(mutex_);
  if (split != split_ || position != asked_) begin_at(split, position, lock);
  internal_check(order_(split, position) >= 0, "a record behind the last one");
  Slot& slot = slot_of(position);
  changed_.notify_all();
  changed_.wait(lock, [&] { return slot.state == State::ready && position < next_; });
  lock.unlock();
  for (size_t f = 0; f < parts.size() && !slot.failed; ++f) {
    const std::byte* from = slot.bytes.data() + offsets_[f];
    for (int64_t i = 0; i < parts[f].entries && parts[f].data != nullptr; ++i) {
      std::memcpy(parts[f].data + i * parts[f].stride, from + i * parts[f].entry,
                  static_cast<size_t>(parts[f].entry));
    }
  }
  lock.lock();
  slot.state = State::free;
  ++asked_;
  const std::exception_ptr failed = std::exchange(slot.failed, nullptr);
  lock.unlock();
  changed_.notify_all();
  if (failed) std::rethrow_exception(failed);
}

}  // namespace thimble
