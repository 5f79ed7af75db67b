#include "support/op_harness.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "base/error.h"
#include "graph/updates.h"
#include "support/interpreter.h"

namespace thimble {
namespace {

Fill fill_of(const Sample& sample, size_t input) {
  return input < sample.fills.size() ? sample.fills[input] : Fill{};
}

// The output's alias in a list, or -1.
int shared_input(const std::vector<Alias>& aliases, size_t output) {
  for (const Alias& alias : aliases) {
    if (alias.output == static_cast<int>(output)) return alias.input;
  }
  return -1;
}

}  // namespace

std::vector<TensorType> switched_types(const OpDef& op, const Sample& sample, DType dtype) {
  std::vector<size_t> movable;
  for (size_t i = 0; i < sample.inputs.size(); ++i) {
    if (sample.inputs[i].dtype == DType::f32) movable.push_back(i);
  }
  // Fewer and fewer inputs, until the op accepts them.
  const uint32_t all = (1u << movable.size()) - 1;
  for (int kept = 0; kept <= static_cast<int>(movable.size()); ++kept) {
    for (uint32_t keep = 0; keep <= all; ++keep) {
      if (std::popcount(keep) != kept) continue;
      std::vector<TensorType> types = sample.inputs;
      for (size_t m = 0; m < movable.size(); ++m) {
        if (((keep >> m) & 1u) == 0) types[movable[m]].dtype = dtype;
      }
      try {
        op.infer(types, sample.attrs);
        return types;
      } catch (const UserError&) {
      }
    }
  }
  internal_check(false, "the op does not accept its own sample");
  return {};
}

OpCase make_case(const OpDef& op, const Sample& sample, const std::vector<TensorType>& types,
                 DType rounded_to) {
  OpCase result;
  result.signature = {&op, sample.attrs, types, op.infer(types, sample.attrs), sample.accumulate};
  const auto make = [&](TensorType type, const Fill& fill, uint64_t seed) {
    Tensor drawn(is_floating(type.dtype) ? TensorType{type.shape, rounded_to} : type);
    fill_tensor(drawn, fill, seed);
    return converted(drawn, type.dtype);
  };
  for (size_t i = 0; i < types.size(); ++i) {
    result.inputs.push_back(make(types[i], fill_of(sample, i), 100 + i));
  }
  for (size_t k = 0; k < result.signature.outputs.size(); ++k) {
    result.prior.push_back(make(result.signature.outputs[k], {}, 200 + k));
  }
  return result;
}

OpCase make_case(const OpDef& op, const Sample& sample) {
  return make_case(op, sample, sample.inputs, DType::f32);
}

double tolerance_of(const OpDef& op, const Sample& sample) {
  // The remainder of a rounding has 8 bits itself: one more rounding (a product and a sum in one)
  // moves it by a unit of its last.
  const bool compensated = sample.attrs.text("rounding", "nearest") == "kahan";
  return compensated ? std::max(op.tolerance, 0x1p-7) : op.tolerance;
}

std::vector<Tensor> run_case(const OpCase& op_case, const RunOptions& options) {
  const OpDef& op = *op_case.signature.op;
  // Neighbours get different alignments too.
  int shift = options.shift;
  const auto next_shift = [&] { return options.shift == 0 ? 0 : shift++ % 16; };
  std::vector<Tensor> inputs;
  for (const Tensor& input : op_case.inputs) inputs.emplace_back(input, next_shift());
  std::vector<Tensor> outputs;
  std::vector<TensorRef> input_refs, output_refs;
  for (Tensor& input : inputs) input_refs.push_back(input.ref());
  for (size_t k = 0; k < op_case.signature.outputs.size(); ++k) {
    const TensorType& type = op_case.signature.outputs[k];
    const int updated = shared_input(op.updates, k);
    const int shared = shared_input(options.share, k);
    const bool adds = ((op_case.signature.accumulate >> k) & 1u) != 0;
    if (adds) {
      outputs.emplace_back(op_case.prior[k], next_shift());
    } else if (updated >= 0) {
      outputs.emplace_back(op_case.inputs[static_cast<size_t>(updated)], next_shift());
    } else {
      outputs.emplace_back(type, next_shift());
    }
    output_refs.push_back(outputs.back().ref());
    if (shared >= 0) output_refs.back().data = inputs[static_cast<size_t>(shared)].ref().data;
  }
  KernelArgs args;
  args.attrs = &op_case.signature.attrs;
  args.inputs = input_refs;
  args.outputs = output_refs;
  args.accumulate = op_case.signature.accumulate;
  run_kernel(options.backend, op_case.signature, args);

  for (size_t i = 0; i < inputs.size(); ++i) {
    EXPECT_TRUE(inputs[i].guards_intact()) << "wrote around input " << i;
    bool overwritten = false;
    for (const Alias& alias : options.share) overwritten |= alias.input == static_cast<int>(i);
    if (!overwritten) {
      EXPECT_TRUE(same_bits(inputs[i], op_case.inputs[i])) << "wrote into input " << i;
    }
  }
  for (size_t k = 0; k < outputs.size(); ++k) {
    EXPECT_TRUE(outputs[k].guards_intact()) << "wrote around output " << k;
    if (output_refs[k].data == outputs[k].ref().data) continue;
    const auto* from = static_cast<const std::byte*>(output_refs[k].data);
    std::copy_n(from, outputs[k].bytes().size(), outputs[k].bytes().begin());
  }
  return outputs;
}

void expect_near(const Tensor& got, const Tensor& expected, double tolerance) {
  ASSERT_EQ(to_string(got.type().shape), to_string(expected.type().shape));
  const bool exact = !is_floating(expected.type().dtype);
  double largest = 0;  // an infinite one would make every other number near
  for (int64_t i = 0; i < expected.elements() && !exact; ++i) {
    const double size = std::abs(expected.get(i));
    if (std::isfinite(size)) largest = std::max(largest, size);
  }
  const double bound = tolerance * largest;
  for (int64_t i = 0; i < got.elements(); ++i) {
    const double difference = std::abs(got.get(i) - expected.get(i));
    const bool both_nan = std::isnan(got.get(i)) && std::isnan(expected.get(i));
    ASSERT_TRUE(difference <= bound || both_nan || got.get(i) == expected.get(i))
        << "element " << i << " is " << got.get(i) << ", not " << expected.get(i) << " within "
        << bound;
  }
}

void check_repeats(const OpDef& op, const Sample& sample, Backend* backend) {
  const OpCase op_case = make_case(op, sample);
  const std::vector<Tensor> first = run_case(op_case, {.backend = backend});
  for (const int shift : {0, 1, 7}) {
    const std::vector<Tensor> again = run_case(op_case, {.backend = backend, .shift = shift});
    for (size_t k = 0; k < first.size(); ++k) {
      EXPECT_TRUE(same_bits(first[k], again[k]))
          << "output " << k << " differs when repeated, at alignment " << shift;
    }
  }
}

void check_in_place(const OpDef& op, const Sample& sample, Backend* backend) {
  OpCase op_case = make_case(op, sample);
  op_case.signature.accumulate = 0;
  const std::vector<Tensor> apart = run_case(op_case, {.backend = backend});
  const auto check = [&](const std::vector<Alias>& share, const std::string& what) {
    const std::vector<Tensor> together = run_case(op_case, {.backend = backend, .share = share});
    for (size_t k = 0; k < apart.size(); ++k) {
      EXPECT_TRUE(same_bits(apart[k], together[k])) << "output " << k << " differs when " << what;
    }
  };
  const auto updates = updates_of(op, op_case.signature.outputs.size());
  const std::vector<Alias> updated(updates.begin(), updates.end());
  if (!updated.empty()) check(updated, "updates happen in place");
  for (const Alias& alias : op.in_place) {
    const auto input = static_cast<size_t>(alias.input), output = static_cast<size_t>(alias.output);
    if (input >= op_case.signature.inputs.size()) continue;  // left out
    if (op_case.signature.inputs[input].bytes() != op_case.signature.outputs[output].bytes()) {
      continue;
    }
    std::vector<Alias> share = updated;
    share.push_back(alias);
    check(share, fmt::format("output {} overwrites input {}", alias.output, alias.input));
  }
}

void check_accumulates(const OpDef& op, const Sample& sample, Backend* backend) {
  OpCase op_case = make_case(op, sample);
  for (size_t k = 0; k < op_case.signature.outputs.size(); ++k) {
    if (((op.accumulates >> k) & 1u) == 0) continue;
    op_case.signature.accumulate = 0;
    const std::vector<Tensor> written = run_case(op_case, {.backend = backend});
    op_case.signature.accumulate = 1u << k;
    const std::vector<Tensor> added = run_case(op_case, {.backend = backend});
    Tensor sum = written[k];
    for (int64_t i = 0; i < sum.elements(); ++i) {
      sum.set(i, written[k].get(i) + op_case.prior[k].get(i));
    }
    // One rounding more or less than the sum has; a backend may also order its sums differently.
    const double rounding = sum.type().dtype == DType::f16    ? 2e-3
                            : sum.type().dtype == DType::bf16 ? 1.6e-2
                                                              : 5e-7;
    expect_near(added[k], sum, backend == nullptr ? rounding : std::max(rounding, op.tolerance));
  }
}

std::string describe(const OpDef& op, const Sample& sample) {
  std::string text = fmt::format("{}(", op.name);
  for (const TensorType& input : sample.inputs) text += to_string(input) + " ";
  return fmt::format("{}){}{}", text, to_string(sample.attrs),
                     sample.accumulate != 0 ? " accumulating" : "");
}

std::vector<const OpDef*> ops_under_test() { return {all_ops().begin(), all_ops().end()}; }

}  // namespace thimble
