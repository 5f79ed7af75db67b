#include "base/host/available_memory.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace thimble {
namespace {

// The number in a file of one; none where there is none ("max").
std::optional<int64_t> number_in(const std::string& path) {
  std::ifstream file(path);
  int64_t number = 0;
  if (!(file >> number)) return std::nullopt;
  return number;
}

// The number behind a name at the beginning of a line.
std::optional<int64_t> field_of(const std::string& path, std::string_view name) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(name)) continue;
    std::istringstream rest(line.substr(name.size()));
    int64_t number = 0;
    if (rest >> number) return number;
  }
  return std::nullopt;
}

std::optional<Bytes> meminfo(const std::string& root, std::string_view name) {
  const auto kib = field_of(root + "/proc/meminfo", name);
  return kib ? std::optional(Bytes(*kib * 1024)) : std::nullopt;
}

// Where a version of control groups keeps what.
struct Version {
  std::string mount;
  std::string limit, usage;
  std::string cache;  // of memory.stat: files that go when memory is short
};

// The memory that a group and those above it leave. None: they have no limit.
std::optional<Bytes> left_in_groups(const Version& version, std::string group, Bytes machine) {
  std::optional<Bytes> least;
  for (;;) {
    const std::string folder = version.mount + (group == "/" ? "" : group);
    const auto limit = number_in(folder + "/" + version.limit);
    if (limit && *limit < machine.count) {
      const int64_t used = number_in(folder + "/" + version.usage).value_or(0);
      const int64_t cache = field_of(folder + "/memory.stat", version.cache).value_or(0);
      const Bytes left(std::max<int64_t>(0, *limit - std::max<int64_t>(0, used - cache)));
      least = least ? std::min(*least, left) : left;
    }
    if (group.size() <= 1) return least;
    group = group.substr(0, group.rfind('/'));
    if (group.empty()) group = "/";
  }
}

std::optional<Bytes> left_by_limits(const std::string& root) {
  const Bytes machine = meminfo(root, "MemTotal:").value_or(Bytes(INT64_MAX));
  std::optional<Bytes> least;
  std::ifstream groups(root + "/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {  // "4:memory:/path" or "0::/path"
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string group = line.substr(second + 1);
    std::optional<Bytes> left;
    if (controllers.empty()) {
      left =
          left_in_groups({root + "/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"},
                         group, machine);
    } else if (("," + controllers + ",").find(",memory,") != std::string::npos) {
      left = left_in_groups({root + "/sys/fs/cgroup/memory", "memory.limit_in_bytes",
                             "memory.usage_in_bytes", "total_inactive_file"},
                            group, machine);
    }
    if (left) least = least ? std::min(*least, *left) : left;
  }
  return least;
}

}  // namespace

std::optional<AvailableMemory> available_memory(const std::string& root) {
  const std::optional<Bytes> free = meminfo(root, "MemAvailable:");
  const std::optional<Bytes> left = left_by_limits(root);
  if (left && (!free || *left <= *free)) return AvailableMemory{*left, "its control group's limit"};
  if (free) return AvailableMemory{*free, "free memory of the machine"};
  return std::nullopt;
}

bool in_container_without_limit(const std::string& root) {
  std::error_code unknown;
  const bool contained = std::filesystem::exists(root + "/.dockerenv", unknown) ||
                         std::filesystem::exists(root + "/run/.containerenv", unknown);
  return contained && !left_by_limits(root);
}

}  // namespace thimble
