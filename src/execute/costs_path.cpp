#include "execute/costs_path.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>

#include "base/error.h"

namespace thimble {
namespace {

// Empty when the variable is not set.
std::string environment(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : "";
}

std::string cache_folder() {
  if (std::string own = environment("THIMBLE_CACHE"); !own.empty()) return own;
  if (const std::string caches = environment("XDG_CACHE_HOME"); !caches.empty()) {
    return caches + "/thimble";
  }
  const std::string home = environment("HOME");
  return home.empty() ? "" : home + "/.cache/thimble";
}

}  // namespace

std::string usual_costs_path(const std::string& device) {
  const std::string folder = cache_folder();
  return folder.empty() ? "" : fmt::format("{}/costs-{}.json", folder, device);
}

std::string costs_to_read(const std::string& asked, const std::string& device) {
  if (asked == kModelledCosts) return "";
  if (asked != kAutomaticCosts) return asked;
  const std::string usual = usual_costs_path(device);
  std::error_code unreadable;
  return std::filesystem::exists(usual, unreadable) ? usual : "";
}

std::string costs_to_write(const std::string& asked, const std::string& device) {
  user_check(asked != kModelledCosts, "calibrate measures; --costs names the file to write");
  std::string path = asked == kAutomaticCosts ? usual_costs_path(device) : asked;
  user_check(!path.empty(),
             "there is no folder for measured costs; set THIMBLE_CACHE to one, or "
             "name a file with --costs");
  return path;
}

}  // namespace thimble
