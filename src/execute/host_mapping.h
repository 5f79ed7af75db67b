// Bytes of an arena mapped to the host between steps: the arena's own where the host can reach
// them, else a copy that is written back when the mapping ends.
#pragma once

#include <exception>
#include <span>
#include <vector>

#include "backend/backend.h"

namespace thimble {

class HostMapping {
 public:
  enum class Use { read, write, change };  // write: former contents do not matter

  HostMapping(Backend& backend, std::byte* at, Bytes size, Use use)
      : backend_(backend), at_(at), use_(use) {
    const auto count = static_cast<size_t>(size.count);
    if (!backend.has_device_memory()) {
      bytes_ = {at, count};
      return;
    }
    copy_.resize(count);
    bytes_ = copy_;
    if (use != Use::write) backend.copy_out(bytes_, at);
  }
  // Unwinding after a failure copies nothing back.
  ~HostMapping() noexcept(false) {
    if (std::uncaught_exceptions() == failures_) give_back();
  }
  HostMapping(HostMapping&& other) noexcept
      : backend_(other.backend_), at_(other.at_), use_(other.use_), bytes_(other.bytes_) {
    copy_.swap(other.copy_);  // leaves the other with nothing to write back
  }
  HostMapping& operator=(HostMapping&&) = delete;

  // Ends the mapping now. REQUIRES: its bytes are not used any more.
  void give_back() {
    if (!copy_.empty() && use_ != Use::read) backend_.copy_in(at_, bytes_);
    drop();
  }
  // Ends the mapping. A copy is not written back.
  void drop() { copy_.clear(); }

  std::span<std::byte> bytes() const { return bytes_; }
  template <class T>
  std::span<T> as() const {
    return {reinterpret_cast<T*>(bytes_.data()), bytes_.size() / sizeof(T)};
  }

 private:
  Backend& backend_;
  std::byte* at_;
  Use use_;
  std::vector<std::byte> copy_;
  std::span<std::byte> bytes_;
  int failures_ = std::uncaught_exceptions();
};

}  // namespace thimble
