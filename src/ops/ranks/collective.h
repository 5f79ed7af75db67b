// The common part of the collective ops on the host.
#pragma once

#include <array>

#include "comm/self.h"
#include "ops/checks.h"
#include "ops/ranks/shard_ranges.h"
#include "ops/reference.h"

namespace thimble {

inline void check_parts(std::string_view op, const TensorType& type, const ShardRanges& g) {
  user_check(g.ranks >= 1 && g.part >= 1 && g.part * g.ranks >= type.elements(),
             "[{}] {} ranks with parts of {} do not hold {}", op, g.ranks, g.part, to_string(type));
}

// The ranks of a kernel call: those it is given, or this process in their place.
class RanksOf {
 public:
  RanksOf(const KernelArgs& args, int ranks)
      : self_(ranks), ranks_(args.ranks != nullptr ? args.ranks : &self_) {
    internal_check(ranks_->size() == ranks, "a collective for another number of ranks");
  }
  Communicator& operator*() { return *ranks_; }
  Communicator* operator->() { return ranks_; }

 private:
  Self self_;
  Communicator* ranks_;
};

template <class T>
void sum_in_order(const OrderedSum<T>& s) {
  constexpr int64_t kBlock = 512;
  std::array<Accumulator<T>, kBlock> block;
  for (int64_t at = 0; at < s.held; at += kBlock) {
    const size_t size = static_cast<size_t>(std::min(kBlock, s.held - at));
    T* const sum = s.sum + at;
    for (size_t i = 0; i < size; ++i) block[i] = s.add ? widen(sum[i]) : Accumulator<T>{0};
    for (int k = 0; k < s.ranks; ++k) {
      const T* x = (k == s.rank ? s.own : s.staged + k * s.stride) + at;
      for (size_t i = 0; i < size; ++i) block[i] += widen(x[i]);
    }
    for (size_t i = 0; i < size; ++i) sum[i] = static_cast<T>(block[i]);
  }
  if (!s.add) std::fill_n(s.sum + s.held, s.count - s.held, T{});
}

// The same on the host.
inline void gather_from(const KernelArgs& args, const TensorRef& part, const TensorRef& whole) {
  const ShardRanges g = shard_ranges(whole.elements(), *args.attrs);
  RanksOf ranks(args, g.ranks);
  gather_from(*ranks, g, part, whole, [](const std::byte* from, std::byte* to, int64_t bytes) {
    std::copy_n(from, bytes, to);
  });
}

}  // namespace thimble
