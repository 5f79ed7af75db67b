// Threads of our own kernels: work is cut into as many parts as there are threads, at places that
// depend on nothing but its size. So sums come out the same to the bit, wherever the data lies and
// whichever thread is first.
#pragma once

#include <omp.h>

#include <algorithm>
#include <cstdint>
#include <type_traits>

// Compiles a function once per instruction set and picks one at load time by the processor's
// features, not its maker. (arch=haswell would run on one family of Intel's alone.) Ice Lake keeps
// code of its own: its sums and products pair up in another way, and its results must not change.
// Mark inner loops with it. An outlined parallel region would lose it and stays outside.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define THIMBLE_FOR_EACH_ISA \
  __attribute__((target_clones("arch=icelake-server", "avx512f", "arch=x86-64-v3", "default")))
#else
#define THIMBLE_FOR_EACH_ISA
#endif

// Helpers of such functions must become part of them. With a tile of channels whose width is known
// at compile time, the sums of a tile stay in registers.
#define THIMBLE_INLINE inline __attribute__((always_inline))

namespace thimble {

class Parts {
 public:
  // `items` things of `cost` bytes or operations each. Small work stays on the calling thread.
  Parts(int64_t items, int64_t cost) : items_(items) {
    constexpr int64_t kWorthAThread = 16 * 1024;
    const int64_t wanted = items * cost / kWorthAThread;
    count_ =
        static_cast<int>(std::clamp<int64_t>(std::min(wanted, items), 1, omp_get_max_threads()));
    // The team size never varies: a change makes the runtime allocate.
    if (count_ > 1) count_ = omp_get_max_threads();
  }

  int count() const { return count_; }
  int64_t begin(int part) const { return items_ * part / count_; }

  // Calls body(part, begin, end) for every part.
  template <class Body>
  void run(const Body& body) const {
    if (count_ == 1) {
      body(0, int64_t{0}, items_);
      return;
    }
#pragma omp parallel for schedule(static, 1) num_threads(count_)
    for (int part = 0; part < count_; ++part) body(part, begin(part), begin(part + 1));
  }

 private:
  int64_t items_;
  int count_ = 1;
};

// Calls body(width, c) for tiles of channels that cover [0, columns): width is a compile-time
// constant, kWidest as long as it fits, then 16, 4, 1.
template <int kWidest, class Body>
THIMBLE_INLINE void for_each_tile(int64_t columns, const Body& body) {
  int64_t c = 0;
  for (; c + kWidest <= columns; c += kWidest) body(std::integral_constant<int, kWidest>{}, c);
  for (; c + 16 <= columns; c += 16) body(std::integral_constant<int, 16>{}, c);
  for (; c + 4 <= columns; c += 4) body(std::integral_constant<int, 4>{}, c);
  for (; c < columns; ++c) body(std::integral_constant<int, 1>{}, c);
}

}  // namespace thimble
