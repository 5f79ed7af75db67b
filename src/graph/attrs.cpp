#include "graph/attrs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"

namespace thimble {

Attrs::Attrs(std::initializer_list<Entry> entries) {
  for (const auto& [name, value] : entries) set(name, value);
}

Attrs& Attrs::set(std::string_view name, AttrValue value) {
  const auto at = std::lower_bound(entries_.begin(), entries_.end(), name,
                                   [](const Entry& e, std::string_view n) { return e.first < n; });
  if (at != entries_.end() && at->first == name) {
    at->second = std::move(value);
  } else {
    entries_.insert(at, Entry(std::string(name), std::move(value)));
  }
  return *this;
}

const AttrValue* Attrs::find(std::string_view name) const {
  for (const auto& [key, value] : entries_) {
    if (key == name) return &value;
  }
  return nullptr;
}

int64_t Attrs::integer(std::string_view name) const {
  const AttrValue* value = find(name);
  internal_check(value && std::holds_alternative<int64_t>(*value), "missing integer attribute");
  return std::get<int64_t>(*value);
}

int64_t Attrs::integer(std::string_view name, int64_t otherwise) const {
  return has(name) ? integer(name) : otherwise;
}

double Attrs::real(std::string_view name) const {
  const AttrValue* value = find(name);
  internal_check(value != nullptr, "missing real attribute");
  if (const auto* whole = std::get_if<int64_t>(value)) return static_cast<double>(*whole);
  internal_check(std::holds_alternative<double>(*value), "attribute is not a number");
  return std::get<double>(*value);
}

double Attrs::real(std::string_view name, double otherwise) const {
  return has(name) ? real(name) : otherwise;
}

const std::vector<int64_t>& Attrs::integers(std::string_view name) const {
  const AttrValue* value = find(name);
  internal_check(value && std::holds_alternative<std::vector<int64_t>>(*value),
                 "missing integer-list attribute");
  return std::get<std::vector<int64_t>>(*value);
}

std::string_view Attrs::text(std::string_view name, std::string_view otherwise) const {
  const AttrValue* value = find(name);
  if (value == nullptr) return otherwise;
  internal_check(std::holds_alternative<std::string>(*value), "attribute is not text");
  return std::get<std::string>(*value);
}

std::string to_string(const Attrs& attrs) {
  if (attrs.entries().empty()) return "";
  std::vector<std::string> parts;
  for (const auto& [name, value] : attrs.entries()) {
    parts.push_back(
        std::visit([&name = name](const auto& v) { return fmt::format("{}={}", name, v); }, value));
  }
  return fmt::format("{{{}}}", fmt::join(parts, ", "));
}

}  // namespace thimble
