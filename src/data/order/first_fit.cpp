#include "data/order/first_fit.h"

#include <algorithm>
#include <bit>

#include "base/error.h"

namespace thimble {
namespace {

// The room that is left in rows. A node holds the most of any row below it.
class RoomTree {
 public:
  RoomTree(int64_t rows, int64_t room)
      : leaves_(std::bit_ceil(static_cast<size_t>(std::max<int64_t>(rows, 1)))),
        most_(2 * leaves_, room) {}

  // Takes `length` of the first row that has so much.
  size_t take(int64_t length) {
    size_t node = 1;
    while (node < leaves_) node = most_[2 * node] >= length ? 2 * node : 2 * node + 1;
    const size_t row = node - leaves_;
    for (most_[node] -= length, node /= 2; node > 0; node /= 2) {
      most_[node] = std::max(most_[2 * node], most_[2 * node + 1]);
    }
    return row;
  }

 private:
  const size_t leaves_;
  std::vector<int64_t> most_;
};

}  // namespace

FirstFit::FirstFit(int64_t count, int64_t room, const std::function<int64_t(int64_t i)>& record_at,
                   const std::function<int64_t(int64_t record)>& length_of) {
  internal_check(count <= UINT32_MAX, "FirstFit: too many records");
  RoomTree left(count, room);
  std::vector<uint32_t> row_of(static_cast<size_t>(count));
  uint32_t rows = 0;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t length = length_of(record_at(i));
    internal_check(length >= 1 && length <= room, "FirstFit: no row has room for a record");
    const auto row = static_cast<uint32_t>(left.take(length));
    row_of[static_cast<size_t>(i)] = row;
    rows = std::max(rows, row + 1);
  }
  begins_.assign(rows + size_t{1}, 0);
  for (const uint32_t row : row_of) ++begins_[row + size_t{1}];
  for (size_t row = 0; row < rows; ++row) begins_[row + 1] += begins_[row];
  std::vector<uint32_t> next(begins_.begin(), begins_.end() - 1);
  records_.resize(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    records_[next[row_of[static_cast<size_t>(i)]]++] = static_cast<uint32_t>(record_at(i));
  }
}

}  // namespace thimble
