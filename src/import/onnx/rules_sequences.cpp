// Recurrent layers and attention.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "import/onnx/onnx_lowering.h"

namespace thimble {
namespace {

const std::vector<int64_t> kRowsFirst = {1, 0, 2};

std::vector<int64_t> backwards(int64_t count) {
  std::vector<int64_t> places(static_cast<size_t>(count));
  std::iota(places.rbegin(), places.rend(), 0);
  return places;
}

}  // namespace

bool OnnxLowering::lower_sequences(const OnnxNode& node) {
  if (node.op == "LSTM") {
    lstm(node);
  } else if (node.op == "GRU" || node.op == "RNN") {
    gru(node);
  } else if (node.op == "Attention") {
    attention(node);
  } else {
    return false;
  }
  return true;
}

namespace {

// The common part of recurrent layers: x [T,N,I], weights [directions, gates*H, ...]; `usual`:
// their activations, once for each direction.
void check_recurrent(const OnnxNode& node, const Shape& x, const Shape& r, std::string_view usual) {
  user_check(x.rank() == 3 && r.rank() == 3, "it wants a sequence [T,N,I]");
  user_check(node.whole("layout", 0) == 0 && node.real("clip", 0) == 0,
             "its rows come first, or it clips");
  const std::string_view given = node.text("activations", usual);
  user_check(given == usual || given == fmt::format("{0},{0}", usual),
             "its activations are {}; {} can be", given, usual);
}

int64_t directions_of(const OnnxNode& node, const Shape& r) {
  const std::string_view direction = node.text("direction", "forward");
  const int64_t count = direction == "bidirectional" ? 2 : 1;
  user_check(r[0] == count, "it has weights for {} directions, not {}", r[0], count);
  return count;
}

bool goes_back(const OnnxNode& node, int64_t direction) {
  return direction == 1 || node.text("direction", "forward") == "reverse";
}

}  // namespace

// ONNX's gates are input, output, forget, cell; ours input, forget, cell, output.
void OnnxLowering::lstm(const OnnxNode& node) {
  const Shape x = shape(name(0)), r = shape(name(2));
  check_recurrent(node, x, r, "Sigmoid,Tanh,Tanh");
  user_check(!has(7) && node.whole("input_forget", 0) == 0, "it has peepholes, or ties its gates");
  const int64_t steps = x[0], rows = x[1], hidden = r[2], directions = directions_of(node, r);
  if (has(4)) {
    const std::vector<int64_t> lengths = known_in(4).wholes();
    user_check(std::ranges::all_of(lengths, [&](int64_t one) { return one == steps; }),
               "its rows have lengths of their own");
  }
  std::vector<Operand> all, last_h, last_c;
  for (int64_t d = 0; d < directions; ++d) {
    const auto of_direction = [&](size_t i) {
      const std::string whole = as_value(name(i));
      return directions == 1 ? whole : part(whole, 0, d, d + 1);
    };
    const auto ordered = [&](const std::string& from, int64_t begin, const Shape& to) {
      std::vector<Operand> gates;
      for (const int64_t gate : {0, 2, 3, 1}) {
        gates.push_back({part(from, 1, begin + gate * hidden, begin + (gate + 1) * hidden), {}});
      }
      return Operand{reshaped(emitted("concat", gates, {{"axis", int64_t{1}}}).value, to), {}};
    };
    const auto state = [&](size_t i) {
      if (has(i)) return Operand{reshaped(of_direction(i), {rows, hidden}), {}};
      const std::string zero = fresh();
      l_.add_filled(zero, {{rows, hidden}, options_.storage}, 0);
      return Operand{zero, {}};
    };
    std::string series = permuted(as_value(name(0)), kRowsFirst);
    if (goes_back(node, d)) series = picked(series, 1, backwards(steps));
    std::vector<Operand> in = {{series, {}},
                               state(5),
                               state(6),
                               ordered(of_direction(1), 0, {4 * hidden, x[2]}),
                               ordered(of_direction(2), 0, {4 * hidden, hidden})};
    if (has(3)) {
      const std::string bias = of_direction(3);
      in.push_back(ordered(bias, 0, {4 * hidden}));
      in.push_back(ordered(bias, 4 * hidden, {4 * hidden}));
    }
    const std::string y = fresh(), h = fresh(), c = fresh();
    emit_as("lstm", in, y, {}, {}, {h, c});
    std::string turned = goes_back(node, d) ? picked(y, 1, backwards(steps)) : y;
    turned = permuted(turned, kRowsFirst);
    all.push_back({reshaped(turned, {steps, 1, rows, hidden}), {}});
    last_h.push_back({reshaped(h, {1, rows, hidden}), {}});
    last_c.push_back({reshaped(c, {1, rows, hidden}), {}});
  }
  const auto joined_as = [&](const std::vector<Operand>& parts, int64_t axis, size_t out) {
    if (node.out.size() <= out || node.out[out].empty()) return;
    emit_as("concat", parts, node.out[out], {{"axis", axis}});
  };
  joined_as(all, 1, 0);
  joined_as(last_h, 0, 1);
  joined_as(last_c, 0, 2);
}

// Step by step. ONNX's gates of a GRU are update, reset, hidden.
void OnnxLowering::gru(const OnnxNode& node) {
  const bool gated = node.op == "GRU";
  const Shape x = shape(name(0)), r = shape(name(2));
  check_recurrent(node, x, r, gated ? "Sigmoid,Tanh" : "Tanh");
  const int64_t steps = x[0], rows = x[1], hidden = r[2], directions = directions_of(node, r);
  const int64_t gates = gated ? 3 : 1;
  const bool reset_after = node.whole("linear_before_reset", 0) != 0;
  user_check(steps >= 1 && steps <= 4096, "it goes over {} time steps; 4096 are the most", steps);
  user_check(!has(4) || std::ranges::all_of(known_in(4).wholes(),
                                            [&](int64_t one) { return one == steps; }),
             "its rows have lengths of their own");
  std::vector<Operand> all, last;
  for (int64_t d = 0; d < directions; ++d) {
    const auto of_direction = [&](size_t i) {
      const std::string whole = as_value(name(i));
      return directions == 1 ? whole : part(whole, 0, d, d + 1);
    };
    const std::string w = reshaped(of_direction(1), {gates * hidden, x[2]});
    const std::string u = reshaped(of_direction(2), {gates * hidden, hidden});
    std::string of_input, of_state;  // biases
    if (has(3)) {
      const std::string bias = of_direction(3);
      of_input = reshaped(part(bias, 1, 0, gates * hidden), {gates * hidden});
      of_state = reshaped(part(bias, 1, gates * hidden, 2 * gates * hidden), {gates * hidden});
    }
    const auto rows_of = [&](const std::string& from, int64_t begin, int64_t end) {
      return Operand{from.empty() ? "" : part(from, 0, begin * hidden, end * hidden), {}};
    };
    const auto columns_of = [&](const Operand& from, int64_t gate) {
      return Operand{part(from.value, 1, gate * hidden, (gate + 1) * hidden), {}};
    };
    // Inputs of all steps at once.
    const std::string flat = reshaped(as_value(name(0)), {steps * rows, x[2]});
    std::vector<Operand> from_input = {{flat, {}}, {w, {}}};
    if (!of_input.empty()) from_input.push_back({of_input, {}});
    const std::string inputs =
        reshaped(emitted("linear", from_input).value, {steps, rows, gates * hidden});
    Operand h;
    if (has(5)) {
      h = {reshaped(of_direction(5), {rows, hidden}), {}};
    } else {
      h = {fresh(), {}};
      l_.add_filled(h.value, {{rows, hidden}, options_.storage}, 0);
    }
    const auto product = [&](const Operand& state, int64_t begin, int64_t end) {
      std::vector<Operand> in = {state, rows_of(u, begin, end)};
      if (!of_state.empty()) in.push_back(rows_of(of_state, begin, end));
      return emitted("linear", in);
    };
    std::vector<Operand> states(static_cast<size_t>(steps));
    for (int64_t k = 0; k < steps; ++k) {
      const int64_t t = goes_back(node, d) ? steps - 1 - k : k;
      const Operand now = {reshaped(part(inputs, 0, t, t + 1), {rows, gates * hidden}), {}};
      if (!gated) {
        h = emitted("tanh", {emitted("add", {now, product(h, 0, 1)})});
      } else {
        const Operand before = product(h, 0, reset_after ? 3 : 2);
        const auto gate = [&](int64_t g) {
          return emitted("sigmoid", {emitted("add", {columns_of(now, g), columns_of(before, g)})});
        };
        const Operand update = gate(0), reset = gate(1);
        const Operand candidate = reset_after ? emitted("mul", {reset, columns_of(before, 2)})
                                              : product(emitted("mul", {reset, h}), 2, 3);
        const Operand fresh_state =
            emitted("tanh", {emitted("add", {columns_of(now, 2), candidate})});
        const Operand change = emitted("mul", {update, emitted("sub", {h, fresh_state})});
        h = emitted("add", {fresh_state, change});
      }
      states[static_cast<size_t>(t)] = {reshaped(h.value, {1, 1, rows, hidden}), {}};
    }
    all.push_back(steps == 1 ? states[0] : emitted("concat", states, {{"axis", int64_t{0}}}));
    last.push_back({reshaped(h.value, {1, rows, hidden}), {}});
  }
  if (!node.out[0].empty()) emit_as("concat", all, node.out[0], {{"axis", int64_t{1}}});
  if (node.out.size() > 1 && !node.out[1].empty()) {
    emit_as("concat", last, node.out[1], {{"axis", int64_t{0}}});
  }
}

// Of opset 23: [N,heads,T,D], or [N,T,heads*D] with the numbers of heads as settings.
void OnnxLowering::attention(const OnnxNode& node) {
  user_check(!has(4) && !has(5) && !has(6) && node.real("softcap", 0) == 0 &&
                 (node.out.size() < 2 || std::ranges::all_of(node.out.begin() + 1, node.out.end(),
                                                             [](auto& o) { return o.empty(); })),
             "it has a past, a soft cap, or tells its scores");
  const Shape given = shape(name(0));
  const auto with_heads = [&](size_t i, int64_t heads) {
    const Shape s = shape(name(i));
    if (s.rank() == 4) return Operand{name(i), {}};
    user_check(s.rank() == 3 && heads >= 1 && s[2] % heads == 0, "it has {} heads of {}", heads,
               to_string(s));
    const std::string apart = reshaped(name(i), {s[0], s[1], heads, s[2] / heads});
    return Operand{permuted(apart, std::vector<int64_t>{0, 2, 1, 3}), {}};
  };
  const int64_t heads = node.whole("q_num_heads", 0), groups = node.whole("kv_num_heads", heads);
  std::vector<Operand> in = {with_heads(0, heads), with_heads(1, groups), with_heads(2, groups)};
  const auto width = static_cast<double>(shape(in[0].value)[3]);
  const bool causal = node.whole("is_causal", 0) != 0;
  Attrs attrs = {{"scale", node.real("scale", 1 / std::sqrt(width))}, {"causal", int64_t{causal}}};
  if (has(3)) {
    user_check(!causal, "it has a mask and is causal");
    const Known* mask = known(name(3));
    user_check(mask == nullptr || !mask->whole, "its mask is of other than numbers to add");
    in.push_back({as_value(name(3)), {}});
  }
  Operand y = emitted("attention", in, attrs);
  if (given.rank() == 4) return l_.alias(node.out[0], y.value);
  const Shape apart = shape(y.value);
  const std::string turned = permuted(y.value, std::vector<int64_t>{0, 2, 1, 3});
  reshaped(turned, {apart[0], apart[2], apart[1] * apart[3]}, node.out[0]);
}

}  // namespace thimble
