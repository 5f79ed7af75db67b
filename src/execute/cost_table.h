// Measured kernel times, kept in a file between runs.
//
//   { "format": "thimble-costs-1",
//     "machines": { "Intel(R) Xeon(R) ..., 2 threads": {
//       "relu(f32[100,64]) -> f32[100,64] by own":
//         { "seconds": 1.2e-05, "modelled": 6.4e-06, "date": "2026-11-15" }, ... }, ... } }
//
// A file holds several machines; times of one are never used on another.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "backend/backend.h"

namespace thimble {

struct KernelTime {
  double seconds = 0;   // measured
  double modelled = 0;  // the backend's modelled time when it was measured
  std::string date;     // YYYY-MM-DD

  bool operator==(const KernelTime&) const = default;
};

// Times of one machine, by kernel_key.
using CostTable = std::map<std::string, KernelTime, std::less<>>;
// By Backend::machine().
using CostFile = std::map<std::string, CostTable, std::less<>>;

// The key of a kernel's time on a given machine: the op, its settings, its types, the results that
// it adds to, and the implementation that runs it. Settings that only change numbers (rates,
// epsilons, the stream of random numbers) are left out.
std::string kernel_key(const Signature& signature, const Kernel& kernel);
// "relu(...) ... by own" -> "relu"
std::string_view op_of_key(std::string_view key);
// "relu(...) ... by own" -> "relu(...) ...": the task without the implementation
std::string_view task_of_key(std::string_view key);

// Throws UserError when the file cannot be read, or is anything but a sound file of costs.
CostFile read_costs(const std::string& path);
// Replaces the whole file, or leaves it as it was. Its folder is made where it is missing.
void write_costs(const std::string& path, const CostFile& file);
// Adds entries to the file. Entries of other machines and kernels stay, except keys in
// `forgotten`.
void add_costs(const std::string& path, const std::string& machine, const CostTable& table,
               const std::vector<std::string>& forgotten = {});
// The date to note beside times.
std::string today();

}  // namespace thimble
