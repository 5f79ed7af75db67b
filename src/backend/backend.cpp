#include "backend/backend.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "backend/cpu/cpu_backend.h"
#include "backend/cuda_library.h"
#include "backend/null/null_backend.h"
#include "base/error.h"
#include "base/nearest_name.h"

namespace thimble {
namespace {

constexpr std::array kDevices = {&device_cpu, &device_cuda, &device_null};  // the usual one first

const DeviceDef* find_device(std::string_view name) {
  const auto found = std::ranges::find(kDevices, name, &DeviceDef::name);
  return found == kDevices.end() ? nullptr : *found;
}

}  // namespace

DeviceTraits device_traits(std::string_view name) {
  const DeviceDef* const device = find_device(name);
  return device == nullptr ? DeviceTraits() : device->traits;
}

std::string_view usual_device() { return kDevices.front()->name; }

std::string_view planning_device() {
  const auto plans = [](const DeviceDef* device) { return !device->traits.runs; };
  return (*std::ranges::find_if(kDevices, plans))->name;
}

std::unique_ptr<Backend> make_backend(std::string_view name, const DeviceOptions& options) {
  if (const DeviceDef* const device = find_device(name)) return device->make(options);
  std::vector<std::string> known;
  for (const DeviceDef* device : kDevices) known.emplace_back(device->name);
  const std::string_view kind = name.substr(0, name.find(':'));  // of "cuda:0"
  user_error("there is no device '{}'; known: {}{}", name, fmt::join(known, ", "),
             nearest_clause(kind, known));
}

}  // namespace thimble
