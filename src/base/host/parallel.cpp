#include "base/host/parallel.h"

#include <algorithm>
#include <system_error>
#include <thread>
#include <vector>

namespace thimble {

void for_ranges_on_threads(int64_t count, int64_t grain,
                           const std::function<void(int64_t begin, int64_t end)>& body) {
  const int64_t grains = (count - 1) / grain + 1;
  const int64_t cores = std::clamp<int64_t>(std::thread::hardware_concurrency(), 1, 16);
  const int64_t ranges = std::min(grains, cores);
  const auto run = [&](int64_t k) {
    body(grains * k / ranges * grain, std::min(count, grains * (k + 1) / ranges * grain));
  };
  std::vector<std::jthread> others;
  others.reserve(static_cast<size_t>(ranges - 1));
  for (int64_t k = 1; k < ranges; ++k) {
    try {
      others.emplace_back(run, k);
    } catch (const std::system_error&) {  // the system gives no more threads
      run(k);
    }
  }
  run(0);
}

}  // namespace thimble
