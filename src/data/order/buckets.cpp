#include "data/order/buckets.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/error.h"
#include "base/number/philox.h"
#include "data/order/shuffle.h"

namespace thimble {
namespace {

// The unit of candidates: so fine that `most` of them are a choice.
int64_t granularity(int64_t longest, int64_t most) {
  int64_t step = 8;
  while (step > 1 && longest / step < 2 * most) step /= 2;
  return step;
}

}  // namespace

int64_t record_length(const Dataset& data, Split split, int64_t index) {
  const std::vector<RecordField>& fields = data.info().fields;
  int64_t longest = 0;
  for (size_t at = 0; at < fields.size(); ++at) {
    if (fields[at].variable) longest = std::max(longest, data.length(split, index, at));
  }
  return longest;
}

std::vector<int64_t> choose_lengths(const Dataset& data, int64_t most) {
  std::vector<int64_t> counts;  // of training records, by length
  int64_t longest = 1;
  for (const Split split : {Split::train, Split::test}) {
    for (int64_t i = 0; i < data.info().count(split); ++i) {
      const int64_t length = record_length(data, split, i);
      longest = std::max(longest, length);
      if (std::ssize(counts) <= length) counts.resize(static_cast<size_t>(length) + 1);
      if (split == Split::train) ++counts[static_cast<size_t>(length)];
    }
  }
  const int64_t step = granularity(longest, most);
  const auto candidates = static_cast<size_t>((longest + step - 1) / step);
  // below[c]: records that fit c * step.
  std::vector<int64_t> below(candidates + 1);
  for (size_t c = 1; c <= candidates; ++c) {
    const int64_t end = std::min<int64_t>(std::ssize(counts), static_cast<int64_t>(c) * step + 1);
    below[c] = std::accumulate(counts.begin(), counts.begin() + end, int64_t{0});
  }
  // least[k][c]: padded positions of those, in k lengths of which c * step is the largest.
  constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
  const auto levels =
      static_cast<size_t>(std::min<int64_t>(most, static_cast<int64_t>(candidates)));
  std::vector<std::vector<int64_t>> least(levels + 1, std::vector<int64_t>(candidates + 1, kNever));
  std::vector<std::vector<size_t>> before(levels + 1, std::vector<size_t>(candidates + 1));
  least[0][0] = 0;
  for (size_t k = 1; k <= levels; ++k) {
    for (size_t c = 1; c <= candidates; ++c) {
      for (size_t b = 0; b < c; ++b) {
        if (least[k - 1][b] == kNever) continue;
        const int64_t padded =
            least[k - 1][b] + (below[c] - below[b]) * static_cast<int64_t>(c) * step;
        if (padded >= least[k][c]) continue;
        least[k][c] = padded;
        before[k][c] = b;
      }
    }
  }
  size_t best = 1;  // as few lengths as leave no more
  for (size_t k = 2; k <= levels; ++k) {
    if (least[k][candidates] < least[best][candidates]) best = k;
  }
  std::vector<int64_t> lengths;
  for (size_t k = best, c = candidates; k > 0; c = before[k--][c]) {
    lengths.push_back(static_cast<int64_t>(c) * step);
  }
  std::ranges::reverse(lengths);
  return lengths;
}

BucketOrder::BucketOrder(const Dataset& data, std::span<const Bucket> buckets, uint64_t seed)
    : seed_(seed) {
  const int64_t count = data.info().train_count;
  internal_check(!buckets.empty(), "batches by tokens need a bucket");
  for (const Bucket& bucket : buckets) pools_.push_back({.bucket = bucket});
  std::ranges::sort(pools_, {}, [](const Pool& pool) { return pool.bucket.length; });
  const auto pool_of = [&](int64_t length) {
    const auto found = std::ranges::lower_bound(
        pools_, length, {}, [](const Pool& pool) { return pool.bucket.length; });
    user_check(found != pools_.end(),
               "a record of '{}' has {} tokens, more than the longest bucket, of {}; give longer "
               "--lengths, or leave them out",
               data.info().name, length, pools_.back().bucket.length);
    return static_cast<size_t>(found - pools_.begin());
  };
  for (int64_t i = 0; i < data.info().test_count; ++i) {
    pool_of(record_length(data, Split::test, i));
  }
  bool in_order = true;
  size_t last = 0;
  for (int64_t i = 0; i < count; ++i) {
    const size_t pool = pool_of(record_length(data, Split::train, i));
    in_order = in_order && pool >= last;
    last = pool;
    ++pools_[pool].own;
  }
  if (!in_order) {  // by counting, so that those of a bucket stay in their order
    user_check(count <= std::numeric_limits<uint32_t>::max(), "'{}' has more records than {}",
               data.info().name, std::numeric_limits<uint32_t>::max());
    sorted_.resize(static_cast<size_t>(count));
  }
  int64_t begin = 0, left = 0;
  for (Pool& pool : pools_) {
    pool.begin = begin;
    begin += pool.own;
    pool.handed_on = left;
    pool.batches = pool.size() / pool.bucket.rows;
    pool.first_batch = steps_;
    left = pool.size() % pool.bucket.rows;
    steps_ += pool.batches;
  }
  user_check(steps_ > 0,
             "the {} training records of '{}' do not fill one batch; choose fewer --tokens", count,
             data.info().name);
  if (in_order) return;
  std::vector<int64_t> next;
  for (const Pool& pool : pools_) next.push_back(pool.begin);
  for (int64_t i = 0; i < count; ++i) {
    const size_t pool = pool_of(record_length(data, Split::train, i));
    sorted_[static_cast<size_t>(next[pool]++)] = static_cast<uint32_t>(i);
  }
}

BucketOrder::BatchPlace BucketOrder::place(int64_t step) const {
  const auto epoch = static_cast<uint64_t>(step / steps_);
  const int64_t number = permuted(step % steps_, steps_, seed_ ^ stable_hash("batches"), epoch);
  size_t pool = 0;
  while (pool + 1 < pools_.size() && number >= pools_[pool + 1].first_batch) ++pool;
  return {pool, number - pools_[pool].first_batch, epoch};
}

int64_t BucketOrder::at(size_t pool, int64_t position, uint64_t epoch) const {
  for (;;) {
    const Pool& here = pools_[pool];
    const int64_t drawn = permuted(position, here.size(), seed_ + pool, epoch);
    if (drawn < here.own) return here.begin + drawn;
    // Of those that the shorter one had left, behind its last batch.
    --pool;
    position = pools_[pool].batches * pools_[pool].bucket.rows + (drawn - here.own);
  }
}

BucketOrder::Place BucketOrder::record(int64_t step, int64_t row) const {
  const BatchPlace batch = place(step);
  const int64_t position = batch.batch * pools_[batch.pool].bucket.rows + row;
  const int64_t index = at(batch.pool, position, batch.epoch);
  return {sorted_.empty() ? index : sorted_[static_cast<size_t>(index)], batch.epoch};
}

}  // namespace thimble
