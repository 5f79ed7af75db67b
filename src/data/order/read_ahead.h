// Records that take a while to read, read ahead by threads while something else is computed: a ring
// of some records, in the order in which they will be asked for. The result does not depend on
// which thread did, or when.
//
//   taken │ ready │ ready │ being read │ ready │ being read │ free │ ...
//           ^ asked for next
#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "data/dataset.h"

namespace thimble {

class ReadAhead {
 public:
  // Which record of the split stands at a position of the order; -1: it has ended.
  using Order = std::function<int64_t(Split split, int64_t position)>;

  // Holds `records` of them, or as many as fit kMostRoom. REQUIRES: the data set outlives it, its
  // fields are not variable, and `order` may be asked by several threads.
  ReadAhead(const Dataset& data, Order order, int64_t records);
  ~ReadAhead();

  // Copies the record at `position` to the parts. The cheapest are those asked for one after the
  // other. Throws what reading it threw. REQUIRES: one caller at a time.
  void read(Split split, int64_t position, std::span<const RecordPart> parts);

  static constexpr int64_t kMostRoom = 64 << 20;

 private:
  enum class State : uint8_t { free, busy, ready };
  struct Slot {
    State state = State::free;
    std::vector<std::byte> bytes;  // of all fields, one behind the other
    std::exception_ptr failed;
  };

  void work(const std::stop_token& stop);
  void read_into(Slot& slot, Split split, int64_t position) const;
  void begin_at(Split split, int64_t position, std::unique_lock<std::mutex>& lock);
  Slot& slot_of(int64_t position) {
    return slots_[static_cast<size_t>(position % static_cast<int64_t>(slots_.size()))];
  }

  const Dataset& data_;
  const Order order_;
  std::vector<int64_t> offsets_;  // by field, and the end
  std::mutex mutex_;
  std::condition_variable_any changed_;
  // Guarded by the mutex; the bytes of a slot belong to its reader while it is busy, to the caller
  // while it is ready.
  std::vector<Slot> slots_;
  Split split_ = Split::train;
  int64_t asked_ = 0;  // position that is asked for next
  int64_t next_ = 0;   // that is read next
  bool ended_ = false;
  int busy_ = 0;
  std::vector<std::jthread> readers_;
};

}  // namespace thimble
