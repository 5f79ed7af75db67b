#include "comm/measure_link.h"

#include <chrono>
#include <vector>

#include "comm/small_collectives.h"

namespace thimble {
namespace {

// Seconds of an exchange in which every rank sends `bytes` to each other, the slowest rank's.
double seconds_of_exchange(Communicator& ranks, int64_t bytes, int times) {
  std::vector<std::byte> out(static_cast<size_t>(bytes * ranks.size())), in(out.size());
  double fastest = 1e9;
  for (int i = 0; i < times; ++i) {
    any_rank(ranks, false);  // all of them are there
    const auto start = std::chrono::steady_clock::now();
    ranks.exchange({out.data(), bytes, bytes}, {in.data(), bytes, bytes});
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    fastest = std::min(fastest, std::ranges::max(gathered(ranks, seconds)));
  }
  return fastest;
}

}  // namespace

Interconnect measure_link(Communicator& ranks) {
  constexpr int64_t kSmall = 8, kLarge = 1 << 20;
  const double others = static_cast<double>(ranks.size() - 1);
  const double small = seconds_of_exchange(ranks, kSmall, 200);
  const double large = seconds_of_exchange(ranks, kLarge, 30);
  const double moved = others * static_cast<double>(kLarge - kSmall);
  return {"measured", small / others, moved / std::max(large - small, 1e-9)};
}

}  // namespace thimble
