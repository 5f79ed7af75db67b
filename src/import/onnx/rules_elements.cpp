// Functions of one number and of two, element by element.
#include <algorithm>
#include <array>
#include <cmath>

#include "import/onnx/onnx_lowering.h"

namespace thimble {
namespace {

// Of the same meaning and with no more to say.
constexpr auto kSameMaps =
    std::to_array<std::pair<std::string_view, std::string_view>>({{"Relu", "relu"},
                                                                  {"Sigmoid", "sigmoid"},
                                                                  {"Tanh", "tanh"},
                                                                  {"Exp", "exp"},
                                                                  {"Log", "log"},
                                                                  {"Sqrt", "sqrt"},
                                                                  {"Abs", "abs"},
                                                                  {"Neg", "neg"},
                                                                  {"Erf", "erf"},
                                                                  {"Sin", "sin"},
                                                                  {"Cos", "cos"},
                                                                  {"Acos", "acos"},
                                                                  {"Asin", "asin"},
                                                                  {"Atan", "atan"},
                                                                  {"Reciprocal", "reciprocal"},
                                                                  {"Round", "round"},
                                                                  {"Floor", "floor"},
                                                                  {"Ceil", "ceil"},
                                                                  {"HardSwish", "hard_swish"},
                                                                  {"Mish", "mish"},
                                                                  {"Softplus", "softplus"},
                                                                  {"Add", "add"},
                                                                  {"Sub", "sub"},
                                                                  {"Mul", "mul"},
                                                                  {"Div", "div"}});

}  // namespace

bool OnnxLowering::lower_elements(const OnnxNode& node) {
  const bool whole_division = node.op == "Div" && is_whole(name(0)) && is_whole(name(1));
  for (const auto& [theirs, ours] : kSameMaps) {
    if (node.op != theirs || whole_division) continue;
    std::vector<Operand> in;
    for (size_t i = 0; i < node.in.size(); ++i) in.push_back(operand(name(i)));
    // Of two that are known one is a weight's neighbour in a list: both as values.
    if (in.size() == 2 && in[0].number && in[1].number) in[0] = {as_value(name(0)), {}};
    emit(std::string(ours), in);
    return true;
  }
  const auto x = [&] { return operand(name(0)); };
  const auto one = [](double number) { return Operand{"", number}; };
  if (whole_division) {
    // Half of one keeps what rounding does to a quotient away from the next.
    const Operand by = operand(name(1));
    user_check(by.number && *by.number >= 1, "it divides whole numbers by one that is not known");
    emit("trunc", {emitted("mul", {emitted("add", {x(), one(0.5)}), one(1 / *by.number)})});
  } else if (node.op == "Mod") {
    const Operand by = operand(name(1));
    user_check(by.number && *by.number >= 1 && is_whole(name(0)),
               "it takes what is left by a number that is not known");
    const Operand shares = emitted("mul", {emitted("add", {x(), one(0.5)}), one(1 / *by.number)});
    emit("sub", {x(), emitted("mul", {emitted("floor", {shares}), by})});
  } else if (node.op == "Identity" || node.op == "CastLike") {
    l_.alias(node.out[0], as_value(name(0)));
  } else if (node.op == "Cast") {
    const int64_t to = node.whole("to", 1);
    const bool real = to == 1 || to == 10 || to == 11 || to == 16;
    if (to == 9) {
      emit("ne", {x(), one(0)});
    } else if (real) {
      emit("cast", {x()});
    } else if (is_whole(name(0))) {
      l_.alias(node.out[0], name(0));
    } else {
      emit("trunc", {x()});
    }
  } else if (node.op == "Clip") {
    clip(node);
  } else if (node.op == "Pow") {
    power(node);
  } else if (node.op == "Sum" || node.op == "Mean") {
    Operand sum = x();
    for (size_t i = 1; i < node.in.size(); ++i) sum = emitted("add", {sum, operand(name(i))});
    const double share = node.op == "Sum" ? 1 : 1 / static_cast<double>(node.in.size());
    if (share == 1) {
      l_.alias(node.out[0], sum.value);
    } else {
      emit("mul", {sum, one(share)});
    }
  } else {
    return lower_activation(node);
  }
  return true;
}

void OnnxLowering::clip(const OnnxNode& node) {
  Attrs attrs;
  std::string y = as_value(name(0));
  const auto bound = [&](size_t i, const char* theirs, const char* ours) {
    if (node.attributes.contains(theirs)) attrs.set(ours, node.real(theirs, 0));
    if (!has(i)) return;
    if (known(name(i)) != nullptr || onnx_.tensors.contains(name(i))) {
      attrs.set(ours, known_in(i).numbers.at(0));
    } else {  // one that is computed
      y = larger({y, {}}, operand(name(i)), i == 2);
    }
  };
  bound(1, "min", "low");
  bound(2, "max", "high");
  if (attrs.entries().empty()) {
    l_.alias(node.out[0], y);
  } else {
    emit("clip", {{y, {}}}, attrs);
  }
}

void OnnxLowering::power(const OnnxNode& node) {
  const Known* base = known(name(0));
  if (base != nullptr) {
    user_check(base->elements() == 1 && base->numbers[0] > 0, "its base is not above 0");
    emit("exp", {emitted("mul", {operand(name(1)), Operand{"", std::log(base->numbers[0])}})});
    return;
  }
  const Known& exponent = known_in(1);
  const bool same = std::ranges::all_of(
      exponent.numbers, [&](double number) { return number == exponent.numbers[0]; });
  user_check(exponent.elements() >= 1 && same, "its exponents differ");
  if (exponent.numbers[0] == 1) {
    l_.alias(node.out[0], name(0));
  } else {
    emit("pow", {operand(name(0))}, {{"exponent", exponent.numbers[0]}});
  }
}

bool OnnxLowering::lower_activation(const OnnxNode& node) {
  const auto x = [&] { return operand(name(0)); };
  const auto one = [](double number) { return Operand{"", number}; };
  if (node.op == "Gelu" || node.op == "com.microsoft.Gelu") {
    emit("gelu", {x()}, {{"approximate", std::string(node.text("approximate", "none"))}});
  } else if (node.op == "com.microsoft.FastGelu" || node.op == "com.microsoft.BiasGelu") {
    const Operand sum = has(1) ? emitted("add", {x(), operand(name(1))}) : x();
    const bool fast = node.op.ends_with("FastGelu");
    emit("gelu", {sum}, {{"approximate", std::string(fast ? "tanh" : "none")}});
  } else if (node.op == "Swish" || node.op == "com.microsoft.QuickGelu") {
    const double alpha = node.real("alpha", node.op == "Swish" ? 1 : 1.702);
    if (alpha == 1) {
      emit("silu", {x()});
    } else {
      emit("mul", {x(), emitted("sigmoid", {emitted("mul", {x(), one(alpha)})})});
    }
  } else if (node.op == "LeakyRelu") {
    emit("leaky_relu", {x()}, {{"slope", node.real("alpha", 0.01)}});
  } else if (node.op == "PRelu") {
    const Operand below =
        emitted("mul", {operand(name(1)), emitted("relu", {emitted("neg", {x()})})});
    emit("sub", {emitted("relu", {x()}), below});
  } else if (node.op == "Elu") {
    emit("elu", {x()}, {{"alpha", node.real("alpha", 1)}});
  } else if (node.op == "Selu") {
    const Operand y = emitted("elu", {x()}, {{"alpha", node.real("alpha", 1.6732632423543772)}});
    emit("mul", {y, one(node.real("gamma", 1.0507009873554805))});
  } else if (node.op == "Celu") {
    const double alpha = node.real("alpha", 1);
    user_check(alpha > 0, "its alpha is {}", alpha);
    const Operand y = emitted("elu", {emitted("mul", {x(), one(1 / alpha)})}, {{"alpha", 1.0}});
    emit("mul", {y, one(alpha)});
  } else if (node.op == "ThresholdedRelu") {
    emit("mul", {x(), emitted("cast", {emitted("gt", {x(), one(node.real("alpha", 1))})})});
  } else if (node.op == "HardSigmoid") {
    const double alpha = node.real("alpha", 0.2), beta = node.real("beta", 0.5);
    if (std::abs(alpha - 1.0 / 6) < 1e-8 && beta == 0.5) {
      emit("hard_sigmoid", {x()});
    } else {
      const Operand line = emitted("add", {emitted("mul", {x(), one(alpha)}), one(beta)});
      emit("clip", {line}, {{"low", 0.0}, {"high", 1.0}});
    }
  } else if (node.op == "Softsign") {
    emit("div", {x(), emitted("add", {emitted("abs", {x()}), one(1)})});
  } else if (node.op == "Tan") {
    emit("div", {emitted("sin", {x()}), emitted("cos", {x()})});
  } else if (node.op == "Sinh" || node.op == "Cosh") {
    const Operand up = emitted("exp", {x()}), down = emitted("exp", {emitted("neg", {x()})});
    emit("mul", {emitted(node.op == "Sinh" ? "sub" : "add", {up, down}), one(0.5)});
  } else {
    return false;
  }
  return true;
}

}  // namespace thimble
