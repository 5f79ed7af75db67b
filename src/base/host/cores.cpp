#include "base/host/cores.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <thread>

namespace thimble {
namespace {

// Quota and period in microseconds, as processors; 0: no quota.
double processors(const std::string& quota, const std::string& period) {
  char* end = nullptr;
  const double microseconds = std::strtod(quota.c_str(), &end);
  const double of = std::strtod(period.c_str(), &end);
  return microseconds > 0 && of > 0 ? microseconds / of : 0;  // "max" and -1 are no quota
}

std::string word(const std::string& path, int which) {
  std::ifstream file(path);
  std::string text;
  for (int i = 0; i <= which; ++i) text.clear(), file >> text;
  return text;
}

}  // namespace

double processor_quota(const std::string& root) {
  double least = 0;
  const auto take = [&](double quota) {
    if (quota > 0) least = least > 0 ? std::min(least, quota) : quota;
  };
  // Lines are "0::/group" (version 2) and "N:cpu,cpuacct:/group" (version 1).
  std::ifstream lines(root + "/proc/self/cgroup");
  for (std::string line; std::getline(lines, line);) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const bool unified = controllers == ",,";
    if (!unified && controllers.find(",cpu,") == std::string::npos) continue;
    const std::string mount = root + (unified ? "/sys/fs/cgroup" : "/sys/fs/cgroup/cpu");
    // A container sees its own group at the mount's root; elsewhere it is below it.
    for (std::string group = line.substr(second + 1);;) {
      const std::string folder = mount + (group == "/" ? "" : group);
      if (unified) {
        take(processors(word(folder + "/cpu.max", 0), word(folder + "/cpu.max", 1)));
      } else {
        take(processors(word(folder + "/cpu.cfs_quota_us", 0),
                        word(folder + "/cpu.cfs_period_us", 0)));
      }
      if (group.empty() || group == "/") break;
      group.resize(group.find_last_of('/'));
    }
  }
  return least;
}

int usable_cores() {
  int cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  cpu_set_t bound;
  CPU_ZERO(&bound);
  if (sched_getaffinity(0, sizeof(bound), &bound) == 0) cores = std::max(1, CPU_COUNT(&bound));
  const double quota = processor_quota();
  if (quota > 0) cores = std::min(cores, static_cast<int>(std::ceil(quota)));
  return std::max(1, cores);
}

}  // namespace thimble
