// Keys and values that are repeated for the heads that share them, in front of attention: the op
// knows groups of heads, and reads each key once. Files repeat, turn and view them in many orders, so
// the axes are followed through all of it.
//
//   [N,T,G*D] ─▶ [N,T,G,1,D] ─▶ repeated r times ─▶ ... ─▶ [N,T,G*r*D]
#include <algorithm>
#include <string>

#include "transform/fuse.h"
#include "transform/fusing.h"

namespace thimble {
namespace {

// An axis of the net, of extent above one: n, t, g, d, or r, the repeats.
struct Axis {
  char name;
  int64_t extent;
};
using Axes = std::vector<Axis>;

// By axis of the tensor: the net's axes that lie in it, one behind the other.
using Laid = std::vector<Axes>;

std::optional<Laid> laid_as(const Axes& all, const Shape& shape) {
  Laid laid(static_cast<size_t>(shape.rank()));
  size_t next = 0;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    int64_t extent = 1;
    while (extent < shape[axis] && next < all.size()) {
      extent *= all[next].extent;
      laid[static_cast<size_t>(axis)].push_back(all[next++]);
    }
    if (extent != shape[axis]) return std::nullopt;
  }
  if (next != all.size()) return std::nullopt;
  return laid;
}

Axes joined(const Laid& laid) {
  Axes all;
  for (const Axes& axes : laid) all.insert(all.end(), axes.begin(), axes.end());
  return all;
}

// Behind the node; none: an axis is cut apart, or repeated otherwise.
std::optional<Laid> behind(const Fusing& f, const Node& node, Laid laid) {
  const Shape from = f.shape(node.inputs[0]), to = f.shape(node.outputs[0]);
  const ValueId output = node.outputs[0];
  if (f.maker(output, "reshape") != nullptr) return laid_as(joined(laid), to);
  if (f.maker(output, "transpose") != nullptr) {
    Laid turned;
    for (const int64_t axis : node.attrs.integers("perm")) {
      turned.push_back(laid[static_cast<size_t>(axis)]);
    }
    return turned;
  }
  if (from.rank() != to.rank()) return std::nullopt;
  for (int axis = 0; axis < to.rank(); ++axis) {
    if (from[axis] != to[axis]) laid[static_cast<size_t>(axis)] = {{'r', to[axis]}};
  }
  return laid;
}

// The tensor [N,T,groups*D] that [N,T,heads*D] repeats; invalid: it repeats none.
ValueId unrepeated(const Fusing& f, ValueId wide, int64_t heads, int64_t& groups) {
  std::vector<const Node*> way;
  ValueId narrow = wide;
  const auto maker = [&](ValueId value) {
    const Node* node = nullptr;
    for (const std::string_view op : {"reshape", "transpose", "broadcast_to"}) {
      if (node == nullptr) node = f.maker(value, op);
    }
    return node;
  };
  while (const Node* node = maker(narrow)) {
    way.push_back(node);
    narrow = node->inputs[0];
  }
  const Shape shape = f.shape(wide);
  const int64_t few = f.type(narrow).elements();
  if (few == 0 || shape.elements() % few != 0) return {};
  const int64_t repeats = shape.elements() / few;
  if (repeats == 1 || heads % repeats != 0) return {};
  groups = heads / repeats;
  const auto without_ones = [](Axes axes) {
    std::erase_if(axes, [](const Axis& axis) { return axis.extent == 1; });
    return axes;
  };
  const int64_t size = shape[2] / heads;
  std::optional<Laid> laid =
      laid_as(without_ones({{'n', shape[0]}, {'t', shape[1]}, {'g', groups}, {'d', size}}),
              f.shape(narrow));
  for (size_t i = way.size(); laid && i-- > 0;) laid = behind(f, *way[i], std::move(*laid));
  if (!laid) return {};
  const Axes wanted =
      without_ones({{'n', shape[0]}, {'t', shape[1]}, {'g', groups}, {'r', repeats}, {'d', size}});
  return std::ranges::equal(joined(*laid), wanted, {}, &Axis::name, &Axis::name) ? narrow
                                                                                 : ValueId{};
}

bool fuse_heads(Fusing& f, NodeId root) {
  const Attrs attrs = f.graph()[root].attrs;
  const int64_t heads = attrs.integer("heads");
  std::vector<ValueId> inputs = f.graph()[root].inputs;
  if (attrs.integer("packed", 0) != 0 || attrs.integer("groups", heads) != heads) return false;
  int64_t of_keys = 0, of_values = 0;
  const ValueId keys = unrepeated(f, inputs[1], heads, of_keys);
  const ValueId values = unrepeated(f, inputs[2], heads, of_values);
  if (!keys.valid() || !values.valid() || of_keys != of_values) return false;
  const Shape wide = f.shape(inputs[1]);
  const std::vector<int64_t> narrow = {wide[0], wide[1], of_keys * (wide[2] / heads)};
  inputs[1] = f.reshaped(keys, narrow);
  inputs[2] = f.reshaped(values, narrow);
  Attrs grouped = attrs;
  grouped.set("groups", of_keys);
  const ValueId y = f.graph()[root].outputs[0];
  f.replace(y, f.apply("attention", inputs, grouped)[0]);
  return true;
}

}  // namespace

extern const PatternDef pattern_grouped_heads{
    .name = "grouped_heads", .roots = {"attention"}, .fuse = fuse_heads};

}  // namespace thimble
