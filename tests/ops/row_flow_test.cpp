// An op's claim on the rows of a batch (OpDef::rows), against its plain kernel. When one row of its
// inputs changes, nothing of the others' results does. A sum changes by as much, whatever the other
// rows are.
#include "graph/row_flow.h"

#include <gtest/gtest.h>

#include <set>

#include "support/op_harness.h"

namespace thimble {
namespace {

// Inputs of a sample, some of whose axes are taken for the rows of a batch.
struct Rowed {
  std::vector<RowFlow> flows;
  int64_t rows;
};

// Every axis of every input by itself, and with one axis of each other input that is as long.
std::vector<Rowed> ways_to_lie(const std::vector<TensorType>& types) {
  std::vector<Rowed> ways;
  const auto lying = [&](size_t i, int axis) {
    return along_axis({axis, 1, 1}, axis, types[i].shape);
  };
  for (size_t i = 0; i < types.size(); ++i) {
    for (int axis = 0; axis < types[i].shape.rank(); ++axis) {
      const int64_t rows = types[i].shape[axis];
      if (rows < 2) continue;
      std::vector<Rowed> made = {{std::vector<RowFlow>(types.size()), rows}};
      made[0].flows[i] = lying(i, axis);
      for (size_t j = i + 1; j < types.size(); ++j) {
        for (size_t way = made.size(); way-- > 0;) {
          for (int other = 0; other < types[j].shape.rank(); ++other) {
            if (types[j].shape[other] != rows) continue;
            Rowed& next = made.emplace_back(made[way]);
            next.flows[j] = lying(j, other);
          }
        }
      }
      ways.insert(ways.end(), made.begin(), made.end());
    }
  }
  return ways;
}

int64_t row_of(const RowFlow& flow, int64_t element, int64_t rows) {
  return element / flow.inner % rows;
}

// The case with other numbers in one row: those of the neighbouring rows, which are fit to be
// there.
OpCase with_row_changed(const OpCase& from, const Rowed& way, int64_t row) {
  OpCase changed = from;
  for (size_t i = 0; i < way.flows.size(); ++i) {
    const RowFlow& flow = way.flows[i];
    if (flow.kind != RowFlow::Kind::rows) continue;
    for (int64_t e = 0; e < from.inputs[i].elements(); ++e) {
      if (row_of(flow, e, way.rows) != row) continue;
      const int64_t shift = (row + 1 < way.rows ? 1 : -row) * flow.inner;
      changed.inputs[i].set(e, from.inputs[i].get(e + shift));
    }
  }
  return changed;
}

class RowsOfOps : public testing::TestWithParam<const OpDef*> {};

TEST_P(RowsOfOps, AreWhatTheOpSays) {
  const OpDef& op = *GetParam();
  for (const Sample& sample : op.samples()) {
    if (sample.accumulate != 0) continue;
    const std::vector<TensorType> types = switched_types(op, sample, DType::f64);
    const OpCase base = make_case(op, sample, types, DType::f64);
    const std::vector<TensorType> outputs = base.signature.outputs;
    const std::vector<Tensor> before = run_case(base);
    for (const Rowed& way : ways_to_lie(types)) {
      const RowCall call = {base.signature.attrs, types, outputs, way.flows, way.rows, {}};
      const std::vector<Tensor> after = run_case(with_row_changed(base, way, 0));
      const OpCase other = with_row_changed(base, way, way.rows - 1);
      const std::vector<Tensor> apart = run_case(other);
      const std::vector<Tensor> both = run_case(with_row_changed(other, way, 0));
      for (size_t k = 0; k < outputs.size(); ++k) {
        const RowFlow flow = op.rows(call, k);
        if (flow.kind == RowFlow::Kind::rows) {
          ASSERT_EQ(outputs[k].elements(), flow.outer * way.rows * flow.inner);
          for (int64_t e = 0; e < outputs[k].elements(); ++e) {
            if (row_of(flow, e, way.rows) == 0) continue;
            ASSERT_EQ(before[k].get(e), after[k].get(e))
                << describe(op, sample) << " output " << k << ": element " << e
                << " is said to be of row " << row_of(flow, e, way.rows) << " and follows row 0";
          }
        } else if ((flow.kind == RowFlow::Kind::sum || flow.kind == RowFlow::Kind::mean) &&
                   way.rows >
                       2) {  // of two rows the changed one and its neighbour are all there is
          const double size = 1 + std::max(before[k].largest(), both[k].largest());
          for (int64_t e = 0; e < outputs[k].elements(); ++e) {
            ASSERT_NEAR(after[k].get(e) - before[k].get(e), both[k].get(e) - apart[k].get(e),
                        1e-6 * size)
                << describe(op, sample) << " output " << k << " is said to be a sum over rows";
          }
        }
      }
    }
  }
}

std::vector<const OpDef*> ops_that_say() {
  std::vector<const OpDef*> ops;
  for (const OpDef* op : all_ops()) {
    const bool repeats = op->name == "fill" || op->name == "random";  // no input of theirs has rows
    if (op->rows != nullptr && !repeats && !op->mixes_rows && op->updates.empty())
      ops.push_back(op);
  }
  return ops;
}
INSTANTIATE_TEST_SUITE_P(Ops, RowsOfOps, testing::ValuesIn(ops_that_say()), OpName());

// So that the test above sees something: rows pass through these along one axis at least.
TEST(RowsOfOps, PassThroughWhatNetsAreMadeOf) {
  for (const char* name : {"add", "attention", "conv2d", "embed", "layer_norm", "lstm_steps",
                           "matmul", "max_pool", "reduce", "relu", "reshape", "slice", "softmax",
                           "softmax_cross_entropy", "take_along", "transpose"}) {
    const OpDef& op = *find_op(name);
    int64_t passes = 0;
    for (const Sample& sample : op.samples()) {
      const std::vector<TensorType> types = switched_types(op, sample, DType::f64);
      const OpCase base = make_case(op, sample, types, DType::f64);
      for (const Rowed& way : ways_to_lie(types)) {
        const RowCall call = {
            base.signature.attrs, types, base.signature.outputs, way.flows, way.rows, {}};
        passes += op.rows(call, 0).kind != RowFlow::Kind::mixed ? 1 : 0;
      }
    }
    EXPECT_GT(passes, 0) << name;
  }
}

}  // namespace
}  // namespace thimble
