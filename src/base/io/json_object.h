// An object of a file that anyone may have edited, read key by key. A value that is missing, of
// another kind or beyond its range is refused by name, as is an unknown key, with the nearest known
// one.
#pragma once

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace thimble {

struct WholeLimits {
  int64_t least = std::numeric_limits<int64_t>::min();
  int64_t most = std::numeric_limits<int64_t>::max();
};

// All of these throw UserError, but has().
class JsonObject {
 public:
  // `what` begins the sentences: "its plan"; `keys` are all there may be. REQUIRES: `object` and
  // `what` outlive this.
  JsonObject(const nlohmann::json& object, std::string_view what,
             std::span<const std::string> keys);

  bool has(const char* key) const { return object_.contains(key); }
  const nlohmann::json& at(const char* key) const;
  const nlohmann::json& list(const char* key) const;
  int64_t whole(const char* key, const WholeLimits& limits = {}) const;
  std::vector<int64_t> wholes(const char* key) const;
  double real(const char* key) const;
  std::string text(const char* key) const;
  bool toggle(const char* key) const;

 private:
  [[noreturn]] void refuse(const char* key, const nlohmann::json& value) const;
  int64_t whole_in(const nlohmann::json& value, const char* key, const WholeLimits& limits) const;

  const nlohmann::json& object_;
  std::string_view what_;
};

}  // namespace thimble
