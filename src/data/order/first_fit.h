// First fit: records, whole, in rows of so many tokens. Each record goes to the first row that has
// room left for it, in O(log n) by a tree over the rows.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace thimble {

class FirstFit {
 public:
  FirstFit() = default;
  // Record record_at(i) has length_of(record_at(i)) tokens, i < count. The order decides.
  // REQUIRES: lengths lie in [1, room], count below 2^32.
  FirstFit(int64_t count, int64_t room, const std::function<int64_t(int64_t i)>& record_at,
           const std::function<int64_t(int64_t record)>& length_of);

  int64_t rows() const { return static_cast<int64_t>(begins_.size()) - 1; }
  // Of a row, in the order in which they came.
  std::span<const uint32_t> records(int64_t row) const {
    const auto at = static_cast<size_t>(row);
    return std::span(records_).subspan(begins_[at], begins_[at + 1] - begins_[at]);
  }

 private:
  std::vector<uint32_t> records_;       // row by row
  std::vector<uint32_t> begins_ = {0};  // of each row in records_, and the end
};

}  // namespace thimble
