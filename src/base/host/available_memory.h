// How much memory this process may still take, by what the system says.
#pragma once

#include <optional>
#include <string>

#include "base/number/bytes.h"

namespace thimble {

struct AvailableMemory {
  Bytes bytes;
  std::string from;  // "its control group's limit", "free memory of the machine"
};

// The least of free memory and of what each control group above the process (version 1 or 2) leaves
// of its limit. None where the system does not tell. `root` is where /proc and /sys are; tests have
// their own.
std::optional<AvailableMemory> available_memory(const std::string& root = "");

// Whether it runs in a container that has no limit of its own, so that free memory is not its
// alone.
bool in_container_without_limit(const std::string& root = "");

}  // namespace thimble
