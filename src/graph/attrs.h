// The settings of a node: a small sorted list of name -> integer, real, integer list or text.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace thimble {

using AttrValue = std::variant<int64_t, double, std::vector<int64_t>, std::string>;

class Attrs {
 public:
  using Entry = std::pair<std::string, AttrValue>;

  Attrs() = default;
  Attrs(std::initializer_list<Entry> entries);

  Attrs& set(std::string_view name, AttrValue value);
  bool has(std::string_view name) const { return find(name) != nullptr; }
  // Lookups never allocate, so kernels may use them inside a step. The two-argument forms return
  // `otherwise` when the name is absent; the one-argument forms treat absence as a bug.
  int64_t integer(std::string_view name) const;
  int64_t integer(std::string_view name, int64_t otherwise) const;
  double real(std::string_view name) const;
  double real(std::string_view name, double otherwise) const;
  const std::vector<int64_t>& integers(std::string_view name) const;
  std::string_view text(std::string_view name, std::string_view otherwise) const;

  const std::vector<Entry>& entries() const { return entries_; }
  bool operator==(const Attrs&) const = default;

 private:
  const AttrValue* find(std::string_view name) const;

  std::vector<Entry> entries_;  // sorted by name
};

std::string to_string(const Attrs& attrs);  // "{pad=1, stride=2}"; empty string when empty

}  // namespace thimble
