// Runs one op's reference kernel on numbers written in a test.
#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "graph/op.h"
#include "graph/updates.h"

namespace thimble {

struct TestTensor {
  TensorType type;
  std::vector<double> values;
};

inline std::vector<std::byte> stored(const TestTensor& tensor) {
  std::vector<std::byte> bytes(static_cast<size_t>(tensor.type.bytes().count));
  with_any_type(tensor.type.dtype, [&]<class T>(TypeTag<T>) {
    for (size_t i = 0; i < tensor.values.size(); ++i) {
      reinterpret_cast<T*>(bytes.data())[i] = static_cast<T>(tensor.values[i]);
    }
  });
  return bytes;
}

// The outputs of `name`, written (never added into), as doubles. Next versions of an input begin as
// that input, as in place.
inline std::vector<std::vector<double>> reference_call(std::string_view name,
                                                       const std::vector<TestTensor>& inputs,
                                                       const Attrs& attrs = {}) {
  const OpDef* op = find_op(name);
  Signature signature{op, attrs, {}, {}, 0};
  std::vector<std::vector<std::byte>> storage;
  for (const TestTensor& input : inputs) {
    EXPECT_EQ(static_cast<int64_t>(input.values.size()), input.type.elements());
    signature.inputs.push_back(input.type);
    storage.push_back(stored(input));
  }
  signature.outputs = op->infer(signature.inputs, attrs);
  for (const TensorType& type : signature.outputs) {
    storage.emplace_back(static_cast<size_t>(type.bytes().count));
  }
  for (const Alias& alias : updates_of(*op, signature.outputs.size())) {
    storage[inputs.size() + static_cast<size_t>(alias.output)] =
        storage[static_cast<size_t>(alias.input)];
  }
  std::vector<TensorRef> refs;
  for (size_t i = 0; i < storage.size(); ++i) {
    const size_t k = i - inputs.size();
    refs.push_back(
        {storage[i].data(), i < inputs.size() ? signature.inputs[i] : signature.outputs[k]});
  }
  std::vector<std::byte> workspace;
  if (op->reference_workspace != nullptr) {
    workspace.resize(static_cast<size_t>(op->reference_workspace(signature).count));
  }
  const std::span<const TensorRef> all = refs;
  op->reference(
      {&attrs, all.first(inputs.size()), all.subspan(inputs.size()), 0, workspace.data()});

  std::vector<std::vector<double>> results;
  for (const TensorRef& output : all.subspan(inputs.size())) {
    results.emplace_back();
    with_any_type(output.type.dtype, [&]<class T>(TypeTag<T>) {
      for (int64_t i = 0; i < output.elements(); ++i) {
        results.back().push_back(static_cast<double>(output.as<T>()[i]));
      }
    });
  }
  return results;
}

inline void expect_near(const std::vector<double>& got, const std::vector<double>& wanted,
                        double tolerance) {
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], wanted[i], tolerance) << "at " << i;
}

// Double arithmetic on a handful of terms.
inline constexpr double kExact = 1e-12;

}  // namespace thimble
