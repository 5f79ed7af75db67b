// The entries of a run's folder that belong to checkpoints.
#pragma once

#include <algorithm>
#include <filesystem>
#include <string>

namespace thimble {

// `latest`, checkpoints, and parts of one that was not finished.
inline int64_t checkpoint_entries(const std::string& run) {
  int64_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(run)) {
    const std::string name = entry.path().filename().string();
    if (name == "latest" || name.find("step-") != std::string::npos) ++count;
  }
  return count;
}

}  // namespace thimble
