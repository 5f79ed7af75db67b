#include "import/onnx/known.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace thimble {
namespace {

constexpr int64_t kMost = 1 << 22;  // elements: a mask of 2048 by 2048

void check_size(const Shape& shape) {
  user_check(shape.elements() <= kMost, "a tensor of {} is more than is computed beforehand",
             to_string(shape));
}

int64_t extent_of(const Shape& shape, int axis) {
  user_check(axis >= 0 && axis < shape.rank(), "{} has no axis {}", to_string(shape), axis);
  return shape[axis];
}

Shape with(const Shape& shape, int axis, std::span<const int64_t> extents) {
  std::vector<int64_t> dims(shape.dims().begin(), shape.dims().end());
  dims.erase(dims.begin() + axis);
  dims.insert(dims.begin() + axis, extents.begin(), extents.end());
  return Shape(std::span<const int64_t>(dims));
}

}  // namespace

std::vector<int64_t> Known::wholes() const {
  std::vector<int64_t> result;
  for (const double number : numbers) {
    user_check(std::isfinite(number) && std::abs(number) < 9.3e18, "{} is no whole number", number);
    result.push_back(number >= 9.2e18 ? INT64_MAX : static_cast<int64_t>(number));
  }
  return result;
}

Known known_list(std::span<const int64_t> numbers) {
  Known list = {{std::ssize(numbers)}, {}, true};
  for (const int64_t number : numbers) list.numbers.push_back(static_cast<double>(number));
  return list;
}

Known filled(const Shape& shape, double number, bool whole) {
  check_size(shape);
  return {shape, std::vector<double>(static_cast<size_t>(shape.elements()), number), whole};
}

Known repeated(const Known& x, const Shape& shape) {
  user_check(broadcast(x.shape, shape, "expand") == shape, "{} does not repeat to {}",
             to_string(x.shape), to_string(shape));
  Known y = filled(shape, 0, x.whole);
  for (int64_t at = 0; at < shape.elements(); ++at) {
    int64_t rest = at, from = 0, step = 1;
    for (int n = 1; n <= shape.rank(); ++n) {
      const int64_t place = rest % shape.back(n);
      rest /= shape.back(n);
      if (n > x.shape.rank()) continue;
      if (x.shape.back(n) != 1) from += place * step;
      step *= x.shape.back(n);
    }
    y.numbers[static_cast<size_t>(at)] = x.numbers[static_cast<size_t>(from)];
  }
  return y;
}

Known combined(const Known& a, const Known& b,
               const std::function<double(double, double)>& combine) {
  const Shape shape = broadcast(a.shape, b.shape, "known");
  Known left = repeated(a, shape);
  const Known right = repeated(b, shape);
  for (size_t i = 0; i < left.numbers.size(); ++i) {
    left.numbers[i] = combine(left.numbers[i], right.numbers[i]);
  }
  left.whole = a.whole && b.whole;
  return left;
}

Known gathered(const Known& table, const Known& indices, int axis) {
  const int64_t extent = extent_of(table.shape, axis);
  Known y = {with(table.shape, axis, indices.shape.dims()), {}, table.whole};
  check_size(y.shape);
  const int64_t outer = table.shape.product(0, axis);
  const int64_t inner = table.shape.product(axis + 1, table.shape.rank());
  const std::vector<int64_t> places = indices.wholes();
  for (int64_t o = 0; o < outer; ++o) {
    for (const int64_t index : places) {
      const int64_t place = index < 0 ? index + extent : index;
      user_check(place >= 0 && place < extent, "there is no place {} of {}", index, extent);
      const auto first = table.numbers.begin() + (o * extent + place) * inner;
      y.numbers.insert(y.numbers.end(), first, first + inner);
    }
  }
  return y;
}

Known sliced(const Known& x, int axis, int64_t begin, int64_t end, int64_t step) {
  const int64_t extent = extent_of(x.shape, axis);
  user_check(step != 0, "it goes by steps of 0");
  const auto place = [&](int64_t at) {
    at = at < 0 ? std::max<int64_t>(-1, at + extent) : at;
    return step > 0 ? std::clamp<int64_t>(at, 0, extent) : std::clamp<int64_t>(at, -1, extent - 1);
  };
  std::vector<int64_t> places;
  const int64_t last = end <= INT64_MIN / 2 ? -1 : place(end);
  for (int64_t at = place(begin); step > 0 ? at < last : at > last; at += step) {
    places.push_back(at);
  }
  return gathered(x, known_list(places), axis);
}

Known joined(std::span<const Known> parts, int axis) {
  user_check(!parts.empty(), "it joins nothing");
  const Shape& first = parts[0].shape;
  extent_of(first, axis);
  const int64_t outer = first.product(0, axis);
  int64_t extent = 0;
  for (const Known& part : parts) {
    user_check(
        part.shape.rank() == first.rank() && part.shape.product(0, axis) == outer &&
            part.shape.product(axis + 1, first.rank()) == first.product(axis + 1, first.rank()),
        "{} and {} cannot be joined", to_string(first), to_string(part.shape));
    extent += part.shape[axis];
  }
  const std::vector<int64_t> extents = {extent};
  Known y = {with(first, axis, extents), {}, parts[0].whole};
  check_size(y.shape);
  for (int64_t o = 0; o < outer; ++o) {
    for (const Known& part : parts) {
      const int64_t count = part.shape.product(axis, first.rank());
      const auto from = part.numbers.begin() + o * count;
      y.numbers.insert(y.numbers.end(), from, from + count);
    }
  }
  return y;
}

Known triangle(const Known& x, int64_t diagonal, bool upper) {
  user_check(x.shape.rank() >= 2, "{} is no matrix", to_string(x.shape));
  Known y = x;
  const int64_t rows = x.shape.back(2), columns = x.shape.back(1);
  for (int64_t at = 0; at < y.elements(); ++at) {
    const int64_t column = at % columns, row = at / columns % rows;
    const bool kept = upper ? column - row >= diagonal : column - row <= diagonal;
    if (!kept) y.numbers[static_cast<size_t>(at)] = 0;
  }
  return y;
}

namespace {

// Where slices of `shape` begin, by their leading places in the last axis of `indices`.
struct Slices {
  std::vector<int64_t> begins;
  int64_t length = 1;
  int places = 0;
};

Slices slices_of(const Shape& shape, const Known& indices) {
  const int64_t places = indices.shape.rank() > 0 ? indices.shape.back(1) : 0;
  user_check(places >= 1 && places <= shape.rank(), "{} names no places of {}",
             to_string(indices.shape), to_string(shape));
  Slices slices = {
      {}, shape.product(static_cast<int>(places), shape.rank()), static_cast<int>(places)};
  const std::vector<int64_t> all = indices.wholes();
  for (size_t i = 0; i < all.size(); i += static_cast<size_t>(places)) {
    int64_t at = 0;
    for (int k = 0; k < places; ++k) {
      const int64_t extent = shape[k], given = all[i + static_cast<size_t>(k)];
      const int64_t place = given < 0 ? given + extent : given;
      user_check(place >= 0 && place < extent, "there is no place {} of {}", given, extent);
      at = at * extent + place;
    }
    slices.begins.push_back(at * slices.length);
  }
  return slices;
}

}  // namespace

Known scattered(const Known& x, const Known& indices, const Known& updates) {
  const Slices slices = slices_of(x.shape, indices);
  user_check(updates.elements() == std::ssize(slices.begins) * slices.length,
             "{} updates do not fill {} places of {}", updates.elements(), slices.begins.size(),
             slices.length);
  Known y = x;
  auto from = updates.numbers.begin();
  for (const int64_t begin : slices.begins) {
    std::copy_n(from, slices.length, y.numbers.begin() + begin);
    from += slices.length;
  }
  return y;
}

Known gathered_by_places(const Known& x, const Known& indices) {
  const Slices slices = slices_of(x.shape, indices);
  std::vector<int64_t> dims(indices.shape.dims().begin(), indices.shape.dims().end() - 1);
  for (int axis = slices.places; axis < x.shape.rank(); ++axis) dims.push_back(x.shape[axis]);
  Known y = {Shape(std::span<const int64_t>(dims)), {}, x.whole};
  check_size(y.shape);
  for (const int64_t begin : slices.begins) {
    const auto first = x.numbers.begin() + begin;
    y.numbers.insert(y.numbers.end(), first, first + slices.length);
  }
  return y;
}

Known turned(const Known& x, std::span<const int64_t> axes) {
  user_check(std::ssize(axes) == x.shape.rank(), "it does not name all axes of {}",
             to_string(x.shape));
  std::vector<int64_t> dims, steps;
  for (const int64_t axis : axes) {
    dims.push_back(extent_of(x.shape, static_cast<int>(axis)));
    steps.push_back(x.shape.product(static_cast<int>(axis) + 1, x.shape.rank()));
  }
  Known y = filled(Shape(std::span<const int64_t>(dims)), 0, x.whole);
  user_check(y.elements() == x.elements(), "it names an axis twice");
  for (int64_t at = 0; at < y.elements(); ++at) {
    int64_t rest = at, from = 0;
    for (size_t k = dims.size(); k-- > 0;) {
      from += rest % dims[k] * steps[k];
      rest /= dims[k];
    }
    y.numbers[static_cast<size_t>(at)] = x.numbers[static_cast<size_t>(from)];
  }
  return y;
}

}  // namespace thimble
