#include "import/permuted_tensor.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"

namespace thimble {

Order plain_order(int rank) {
  Order order(static_cast<size_t>(rank));
  std::iota(order.begin(), order.end(), 0);
  return order;
}

bool is_plain(const Order& order) { return std::ranges::is_sorted(order); }

int place_of(const Order& order, int axis) {
  return static_cast<int>(std::ranges::find(order, axis) - order.begin());
}

std::vector<int64_t> dims_of(const Shape& shape) {
  return {shape.dims().begin(), shape.dims().end()};
}

Shape shape_of(const Builder& b, const PermutedTensor& x) {
  const Shape value = b.shape(x.value);
  std::vector<int64_t> dims(x.order.size());
  for (size_t k = 0; k < x.order.size(); ++k) {
    dims[static_cast<size_t>(x.order[k])] = value[static_cast<int>(k)];
  }
  return Shape(std::span<const int64_t>(dims));
}

ValueId reshaped(Builder& b, ValueId x, const std::vector<int64_t>& dims) {
  if (b.shape(x) == Shape(std::span<const int64_t>(dims))) return x;
  return b.op("reshape", {x}, {{"shape", dims}});
}

ValueId in_order(Builder& b, const PermutedTensor& x, const Order& order) {
  if (x.order == order) return x.value;
  const Shape shape = shape_of(b, x);
  const auto without_ones = [&](const Order& axes) {
    Order kept;
    std::ranges::copy_if(axes, std::back_inserter(kept),
                         [&](int axis) { return shape[axis] != 1; });
    return kept;
  };
  std::vector<int64_t> dims, perm;
  for (const int axis : order) {
    dims.push_back(shape[axis]);
    perm.push_back(place_of(x.order, axis));
  }
  if (without_ones(x.order) == without_ones(order)) return reshaped(b, x.value, dims);
  return b.op("transpose", {x.value}, {{"perm", perm}});
}

ValueId plain(Builder& b, const PermutedTensor& x) {
  return in_order(b, x, plain_order(static_cast<int>(x.order.size())));
}

namespace {

// Axes [first, last) of one shape that hold what axes [other_first, other_last) of another do.
struct Group {
  int first, last, other_first, other_last;
};

// Both shapes cut where they agree; nothing where they are of different size.
std::vector<Group> groups_of(const Shape& from, const Shape& to) {
  std::vector<Group> groups;
  int f = 0, t = 0;
  while (f < from.rank() || t < to.rank()) {
    Group group = {f, f, t, t};
    int64_t left = 1, right = 1;
    const auto take = [](const Shape& shape, int& at, int64_t& product) {
      product *= shape[at];
      ++at;
    };
    if (f < from.rank()) take(from, f, left);
    if (t < to.rank()) take(to, t, right);
    while (left != right) {
      if (left < right && f < from.rank()) {
        take(from, f, left);
      } else if (right < left && t < to.rank()) {
        take(to, t, right);
      } else {
        return {};
      }
    }
    group.last = f, group.other_last = t;
    groups.push_back(group);
  }
  return groups;
}

}  // namespace

PermutedTensor reshape_permuted(Builder& b, const PermutedTensor& x, const Shape& shape) {
  const Shape from = shape_of(b, x);
  user_check(from.elements() == shape.elements(), "{} has {} elements, {} has {}", to_string(from),
             from.elements(), to_string(shape), shape.elements());
  const PermutedTensor as_net = {{}, plain_order(shape.rank())};
  const std::vector<Group> groups = groups_of(from, shape);
  if (is_plain(x.order) || groups.empty() || from.elements() == 0) {
    return {reshaped(b, plain(b, x), dims_of(shape)), as_net.order};
  }
  // A group stays where its first axis with more than one element lies, the others right behind it.
  struct Placed {
    size_t place;
    const Group* group;
  };
  std::vector<Placed> placed;
  for (const Group& group : groups) {
    size_t place = x.order.size();
    int before = -1;
    for (int axis = group.first; axis < group.last; ++axis) {
      if (from[axis] == 1) continue;
      int at = place_of(x.order, axis);
      if (place == x.order.size()) place = static_cast<size_t>(at);
      for (int k = before + 1; before >= 0 && k < at; ++k) {
        if (from[x.order[static_cast<size_t>(k)]] != 1) at = before;  // something lies between
      }
      if (before >= 0 && at <= before) {
        return {reshaped(b, plain(b, x), dims_of(shape)), as_net.order};
      }
      before = at;
    }
    placed.push_back({place, &group});
  }
  std::ranges::stable_sort(placed, {}, &Placed::place);
  std::vector<int64_t> dims;
  Order order;
  for (const Placed& one : placed) {
    for (int axis = one.group->other_first; axis < one.group->other_last; ++axis) {
      dims.push_back(shape[axis]);
      order.push_back(axis);
    }
  }
  return {reshaped(b, x.value, dims), order};
}

}  // namespace thimble
