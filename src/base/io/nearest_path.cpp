#include "base/io/nearest_path.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>
#include <vector>

#include "base/nearest_name.h"

namespace thimble {
namespace {

namespace fs = std::filesystem;

// Names in a folder, as many as a person could have meant.
std::vector<std::string> names_in(const fs::path& folder) {
  constexpr size_t kMost = 10'000;
  std::vector<std::string> names;
  std::error_code error;
  fs::directory_iterator at(folder.empty() ? fs::path(".") : folder, error);
  for (; !error && at != fs::directory_iterator() && names.size() < kMost; at.increment(error)) {
    names.push_back(at->path().filename().string());
  }
  return names;
}

}  // namespace

std::string nearest_path(const std::string& path) {
  fs::path found;
  bool changed = false;
  for (const fs::path& part : fs::path(path)) {
    std::error_code ignored;
    if (part.empty() || fs::exists(found / part, ignored)) {
      found /= part;
      continue;
    }
    const std::string likely = likely_name(part.string(), names_in(found));
    if (likely.empty()) return "";
    found /= likely;
    changed = true;
  }
  return changed ? found.string() : "";
}

std::string nearest_path_clause(const std::string& path) {
  const std::string nearest = nearest_path(path);
  return nearest.empty() ? "" : fmt::format("; the nearest is '{}'", nearest);
}

}  // namespace thimble
