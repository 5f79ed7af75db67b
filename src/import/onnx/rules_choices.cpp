// Comparisons, and what is chosen by them.
#include <algorithm>
#include <array>
#include <cmath>

#include "import/onnx/onnx_lowering.h"

namespace thimble {
namespace {

constexpr auto kCompares =
    std::to_array<std::pair<std::string_view, std::string_view>>({{"Equal", "eq"},
                                                                  {"Less", "lt"},
                                                                  {"LessOrEqual", "le"},
                                                                  {"Greater", "gt"},
                                                                  {"GreaterOrEqual", "ge"}});

}  // namespace

bool OnnxLowering::lower_choices(const OnnxNode& node) {
  for (const auto& [theirs, ours] : kCompares) {
    if (node.op != theirs) continue;
    emit(std::string(ours), {operand(name(0)), operand(name(1))});
    return true;
  }
  const auto x = [&] { return operand(name(0)); };
  if (node.op == "Not") {
    emit("sub", {{"", 1.0}, emitted("cast", {x()})});
  } else if (node.op == "And") {
    emit("mul", {emitted("cast", {operand(as_value(name(0)))}),
                 emitted("cast", {operand(as_value(name(1)))})});
  } else if (node.op == "Or" || node.op == "Xor") {
    const Operand a = emitted("cast", {{as_value(name(0)), {}}});
    const Operand b = emitted("cast", {{as_value(name(1)), {}}});
    const Operand both = emitted("mul", {a, b});
    const Operand twice = node.op == "Or" ? both : emitted("mul", {both, {"", 2.0}});
    emit("sub", {emitted("add", {a, b}), twice});
  } else if (node.op == "Sign") {
    emit("sub", {emitted("gt", {x(), {"", 0.0}}), emitted("lt", {x(), {"", 0.0}})});
  } else if (node.op == "IsNaN") {
    not_a_number_[node.out[0]] = name(0);
  } else if (node.op == "Where") {
    const auto guarded = not_a_number_.find(name(0));
    if (guarded != not_a_number_.end()) {  // exporters guard softmax that way, where all is masked
      user_check(guarded->second == name(2), "it asks whether something else is a number");
      l_.alias(node.out[0], name(2));
      return true;
    }
    const Shape to =
        broadcast(broadcast(shape(name(0)), shape(name(1)), "Where"), shape(name(2)), "Where");
    // Infinite numbers that are known become the largest: zero times them is zero then.
    const auto finite = [&](size_t i) -> Operand {
      const Known* numbers = known(name(i));
      if (numbers == nullptr) return operand(name(i));
      Known clamped = *numbers;
      for (double& number : clamped.numbers) number = std::clamp(number, -3.0e38, 3.0e38);
      if (clamped.elements() == 1) return {"", clamped.numbers[0]};
      return {constant_of(clamped, fresh()), {}};
    };
    const std::string mask = as_value(name(0));
    const std::string made = chosen({mask, {}}, finite(1), finite(2));
    if (shape(made) == to) {
      l_.alias(node.out[0], made);
    } else {
      emit("expand", {{made, {}}}, {}, to);
    }
  } else if (node.op == "Max" || node.op == "Min") {
    std::string best;
    Operand at = x();
    user_check(node.in.size() >= 1, "it compares nothing");
    for (size_t i = 1; i < node.in.size(); ++i) {
      Operand next = operand(name(i));
      if (at.number && next.number) next = {constant_of(known_in(i), fresh()), {}};
      at = {larger(at, next, node.op == "Min"), {}};
    }
    user_check(!at.number, "it compares nothing");
    l_.alias(node.out[0], at.value);
  } else if (node.op == "OneHot") {
    const int64_t depth = known_in(1).wholes().at(0);
    const Known& values = known_in(2);
    const Shape ids = shape(name(0));
    const int64_t rank = ids.rank() + 1, given = node.whole("axis", -1);
    const int axis = axis_of(given, static_cast<int>(rank));
    user_check(depth >= 1 && depth <= 1 << 20 && values.elements() == 2, "it tells {} apart",
               depth);
    std::vector<int64_t> dims = dims_of(ids), places(static_cast<size_t>(rank), 1);
    dims.insert(dims.begin() + axis, 1);
    places[static_cast<size_t>(axis)] = depth;
    Known all = {as_shape(places), {}, true};
    for (int64_t at = 0; at < depth; ++at) all.numbers.push_back(static_cast<double>(at));
    const std::string numbers = constant_of(all, fresh());
    const Operand is = emitted("eq", {{reshaped(name(0), as_shape(dims)), {}}, {numbers, {}}});
    const double off = values.numbers[0], on = values.numbers[1];
    l_.alias(node.out[0], chosen(is, {"", on}, {"", off}));
  } else {
    return false;
  }
  return true;
}

}  // namespace thimble
