// Random graphs from a seed on, until a count or a time is reached: `make fuzz-gradients`.
//
// usage: fuzz_gradients [SEED [SECONDS [COUNT]]]
//
// SEED is that of the first graph (1000000). The run ends after SECONDS (60) or COUNT graphs (any),
// whichever comes first. Each fault is printed with the seed that shows it again:
// `fuzz_gradients SEED 60 1`. Exit code 1, if there was one.
#include <fmt/format.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>

#include "graph/op.h"
#include "support/check_graph.h"

int main(int argc, char** argv) {
  using namespace thimble;
  const auto argument = [&](int i, uint64_t otherwise) {
    return argc > i ? std::strtoull(argv[i], nullptr, 10) : otherwise;
  };
  const uint64_t first = argument(1, 1'000'000), seconds = argument(2, 60);
  const uint64_t count = argument(3, UINT64_MAX);
  const auto start = std::chrono::steady_clock::now();
  const auto elapsed = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  const auto backend = make_backend("cpu", 1);
  Tally tally;
  int64_t faults = 0;
  uint64_t done = 0;
  for (; done < count; ++done) {
    if (elapsed() >= static_cast<double>(seconds)) break;
    if (const auto fault = find_fault_in_random_graph(first + done, *backend, tally)) {
      fmt::print("{}\n", *fault);
      ++faults;
    }
  }
  fmt::print("{} graphs from seed {} on in {:.0f} s: {} at fault, {} unsettled\n", done, first,
             elapsed(), faults, tally.unsettled);
  for (const auto& [what, number] : tally.happened) fmt::print("  {} {}\n", number, what);
  for (const auto& [op, number] : tally.ops) fmt::print("  {} {}\n", number, op);
  return faults > 0 ? 1 : 0;
}
