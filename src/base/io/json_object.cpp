#include "base/io/json_object.h"

#include <algorithm>

#include "base/error.h"
#include "base/io/json.h"
#include "base/nearest_name.h"

namespace thimble {

JsonObject::JsonObject(const nlohmann::json& object, std::string_view what,
                       std::span<const std::string> keys)
    : object_(object), what_(what) {
  user_check(object.is_object(), "{} is no table", what_);
  for (const auto& [key, value] : object.items()) {
    user_check(std::ranges::find(keys, key) != keys.end(),
               "{} has a key '{}' that is none; the nearest is '{}'", what_, key,
               nearest_name(key, keys));
  }
}

const nlohmann::json& JsonObject::at(const char* key) const {
  const auto found = object_.find(key);
  user_check(found != object_.end(), "{} does not say '{}'", what_, key);
  return *found;
}

const nlohmann::json& JsonObject::list(const char* key) const {
  const nlohmann::json& value = at(key);
  if (!value.is_array()) refuse(key, value);
  return value;
}

void JsonObject::refuse(const char* key, const nlohmann::json& value) const {
  constexpr size_t kMost = 40;
  const std::string text = json_text(value);
  user_error("'{}' of {} cannot be {}", key, what_, text.size() <= kMost ? text : "what it is");
}

int64_t JsonObject::whole_in(const nlohmann::json& value, const char* key,
                             const WholeLimits& limits) const {
  const bool held = value.is_number_unsigned()
                        ? value.get<uint64_t>() <= static_cast<uint64_t>(INT64_MAX)
                        : value.is_number_integer();
  const int64_t number = held ? value.get<int64_t>() : 0;
  if (!held || number < limits.least || number > limits.most) refuse(key, value);
  return number;
}

int64_t JsonObject::whole(const char* key, const WholeLimits& limits) const {
  return whole_in(at(key), key, limits);
}

std::vector<int64_t> JsonObject::wholes(const char* key) const {
  std::vector<int64_t> numbers;
  for (const nlohmann::json& entry : list(key)) numbers.push_back(whole_in(entry, key, {}));
  return numbers;
}

double JsonObject::real(const char* key) const {
  const nlohmann::json& value = at(key);
  if (!value.is_number()) refuse(key, value);
  return value.get<double>();
}

std::string JsonObject::text(const char* key) const {
  const nlohmann::json& value = at(key);
  if (!value.is_string()) refuse(key, value);
  return value.get<std::string>();
}

bool JsonObject::toggle(const char* key) const {
  const nlohmann::json& value = at(key);
  if (!value.is_boolean()) refuse(key, value);
  return value.get<bool>();
}

}  // namespace thimble
