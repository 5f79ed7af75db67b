// Strong indices. Graph parts refer to each other by index, never by pointer; an index of one kind
// cannot be passed where another is wanted.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace thimble {

template <class Tag>
struct Id {
  int32_t index = -1;

  constexpr bool valid() const { return index >= 0; }
  constexpr size_t at() const { return static_cast<size_t>(index); }
  constexpr auto operator<=>(const Id&) const = default;
};

using NodeId = Id<struct NodeTag>;
using ValueId = Id<struct ValueTag>;

template <class IdType>
constexpr IdType make_id(size_t index) {
  return IdType{static_cast<int32_t>(index)};
}

}  // namespace thimble

template <class Tag>
struct std::hash<thimble::Id<Tag>> {
  size_t operator()(thimble::Id<Tag> id) const noexcept { return std::hash<int32_t>{}(id.index); }
};
