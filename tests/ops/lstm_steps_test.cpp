#include <array>

#include "autodiff/autodiff.h"
#include "graph/builder.h"
#include "reference_call.h"
#include "support/interpreter.h"
#include "support/op_harness.h"

namespace thimble {
namespace {

constexpr int64_t kSteps = 4, kBatch = 2, kInputs = 3, kHidden = 5;
const Shape kState = {kBatch, kHidden};
const Shape kStates = {kSteps, kBatch, kHidden};

TensorType f64(const Shape& shape) { return {shape, DType::f64}; }

// x, h, c, w_x, w_h, bias.
std::vector<TensorType> input_types() {
  return {
      f64({kSteps, kBatch, kInputs}), f64(kState),       f64(kState), f64({4 * kHidden, kInputs}),
      f64({4 * kHidden, kHidden}),    f64({4 * kHidden})};
}

// The states after every step [K,B,H], and those after the last.
struct States {
  ValueId hs, h, c;
};

States as_one_node(Builder& build, const std::vector<ValueId>& in) {
  const std::vector<ValueId> out = build.apply("lstm_steps", in);
  return {out[0], out[1], out[2]};
}

States step_by_step(Builder& build, const std::vector<ValueId>& in) {
  States now = {{}, in[1], in[2]};
  for (int64_t t = 0; t < kSteps; ++t) {
    ValueId x = build.op("slice", {in[0]}, {{"axis", int64_t{0}}, {"begin", t}, {"end", t + 1}});
    x = build.op("reshape", {x}, {{"shape", std::vector<int64_t>{kBatch, kInputs}}});
    const auto next = build.apply("lstm_cell", {x, now.h, now.c, in[3], in[4], in[5]});
    now.h = next[0];
    now.c = next[1];
    const ValueId one =
        build.op("reshape", {now.h}, {{"shape", std::vector<int64_t>{1, kBatch, kHidden}}});
    now.hs = t == 0 ? one : build.op("concat", {now.hs, one}, {{"axis", int64_t{0}}});
  }
  return now;
}

// The states and the gradients of all inputs, where something arrives at those of `roots` (hs, h',
// c').
std::vector<Tensor> results(States (*build_states)(Builder&, const std::vector<ValueId>&),
                            const std::array<bool, 3>& roots) {
  Graph graph;
  Builder build(graph);
  std::vector<ValueId> inputs;
  for (const TensorType& type : input_types()) {
    inputs.push_back(build.input("x" + std::to_string(inputs.size()), type));
  }
  std::array<ValueId, 3> arriving = {build.input("dhs", f64(kStates)),
                                     build.input("dh", f64(kState)),
                                     build.input("dc", f64(kState))};
  const States states = build_states(build, inputs);
  const std::array<ValueId, 3> ends = {states.hs, states.h, states.c};
  std::vector<GradientRoot> given;
  for (size_t r = 0; r < roots.size(); ++r) {
    if (roots[r]) given.push_back({ends[r], arriving[r]});
  }
  const std::vector<ValueId> gradients = add_gradients(graph, given, inputs);
  verify_graph(graph);
  Interpreter run(graph);
  uint64_t seed = 1;
  for (const ValueId value : inputs) fill_tensor(run[value], {}, seed++);
  for (const ValueId value : arriving) fill_tensor(run[value], {}, seed++);
  run.run();
  std::vector<Tensor> all;
  for (const ValueId value : ends) all.push_back(run[value]);
  for (const ValueId value : gradients) all.push_back(run[value]);
  return all;
}

// Whatever arrives: at every state, at the last ones alone (as in the topmost layer), at one alone.
TEST(LstmSteps, AreThatManyCells) {
  for (const std::array<bool, 3>& roots :
       {std::array{true, true, true}, std::array{false, true, true}, std::array{true, false, false},
        std::array{false, true, false}, std::array{false, false, true}}) {
    const std::vector<Tensor> whole = results(as_one_node, roots);
    const std::vector<Tensor> cells = results(step_by_step, roots);
    ASSERT_EQ(whole.size(), cells.size());
    for (size_t i = 0; i < whole.size(); ++i) {
      SCOPED_TRACE(i);
      expect_near(whole[i], cells[i], kExact);
    }
  }
}

TEST(LstmSteps, WhatArrivesAtTheStatesAndTheGradientOfTheInputAreOptional) {
  const Shape gates = {kSteps, kBatch, 4 * kHidden};
  std::vector<TensorType> types = input_types();
  types.pop_back();
  for (const Shape& shape : {gates, kStates, kStates, kState, kState}) types.push_back(f64(shape));
  const OpDef* op = find_op("lstm_steps_backward");
  const auto infer = [&](int64_t needs_dx) { return op->infer(types, {{"needs_dx", needs_dx}}); };
  EXPECT_EQ(infer(0).size(), 5u);
  types.push_back(f64(kStates));
  EXPECT_EQ(infer(0).size(), 5u);
  ASSERT_EQ(infer(1).size(), 6u);
  EXPECT_EQ(infer(1)[5], types[0]);
}

}  // namespace
}  // namespace thimble
