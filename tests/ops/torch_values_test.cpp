// Windows, resampling, padding, axes and ignored labels against numbers from outside: PyTorch's, which
// make_torch_values.py stored. An op, its kernels and its gradient share their geometry, so that none of them
// could tell that it is wrong.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/io/json.h"
#include "reference_call.h"
#include "support/op_harness.h"

namespace thimble {
namespace {

using nlohmann::json;

// Element e of input i, as in make_torch_values.py.
std::vector<double> drawn(size_t which, int64_t count) {
  constexpr int64_t kDraws[][3] = {{37, 101, 50}, {29, 23, 11}, {53, 97, 48}};
  const auto [factor, modulus, half] = kDraws[which];
  std::vector<double> numbers;
  for (int64_t e = 0; e < count; ++e) {
    numbers.push_back(static_cast<double>((e * factor) % modulus - half) / 4);
  }
  return numbers;
}

Attrs attrs_of(const json& from) {
  Attrs attrs;
  for (const auto& [name, value] : from.items()) {
    if (value.is_number_integer()) {
      attrs.set(name, value.get<int64_t>());
    } else if (value.is_number()) {
      attrs.set(name, value.get<double>());
    } else if (value.is_string()) {
      attrs.set(name, value.get<std::string>());
    } else {
      attrs.set(name, value.get<std::vector<int64_t>>());
    }
  }
  return attrs;
}

Shape shape_of(const json& dims) {
  const auto extents = dims.get<std::vector<int64_t>>();
  return Shape(std::span<const int64_t>(extents));
}

// In double; bilinear weights are f32 whatever the images are.
double tolerance_of(const json& one) {
  const bool in_float = one["op"].get<std::string>().starts_with("resample");
  return in_float ? 2e-5 : 1e-9;
}

void expect_outputs(const std::vector<std::vector<double>>& got, const json& one) {
  const json& wanted = one["outputs"];
  ASSERT_GE(got.size(), wanted.size());
  for (size_t k = 0; k < wanted.size(); ++k) {
    expect_near(got[k], wanted[k].get<std::vector<double>>(), tolerance_of(one));
  }
}

// The loss and its gradient, as two ops make them.
void check_cross_entropy(const json& one) {
  const Shape shape = shape_of(one["inputs"][0]);
  std::vector<double> logits = drawn(0, shape.elements());
  for (double& x : logits) x /= 4;
  const TestTensor x = {{shape, DType::f64}, logits}, whole = {{{1}, DType::f64}, {1}};
  const TestTensor labels = {{{shape[0]}, DType::i32}, one["labels"].get<std::vector<double>>()};
  const Attrs attrs = attrs_of(one["attrs"]);
  const auto loss = reference_call("softmax_cross_entropy", {x, labels, whole}, attrs);
  const TestTensor lse = {{{shape[0]}, DType::f64}, loss[1]};
  const auto dx =
      reference_call("softmax_cross_entropy_backward", {x, lse, labels, whole, whole}, attrs);
  expect_outputs({loss[0], dx[0]}, one);
}

TEST(TorchValues, AreTheSame) {
  const json file = read_json(THIMBLE_TEST_VALUES, "values of PyTorch");
  ASSERT_GT(file["cases"].size(), 100u);
  for (const json& one : file["cases"]) {
    SCOPED_TRACE(one["op"].get<std::string>() + " " + one["inputs"].dump() + " " +
                 one["attrs"].dump());
    if (one["op"] == "cross_entropy") {
      check_cross_entropy(one);
      continue;
    }
    std::vector<TestTensor> inputs;
    for (size_t i = 0; i < one["inputs"].size(); ++i) {
      const Shape shape = shape_of(one["inputs"][i]);
      inputs.push_back({{shape, DType::f64}, drawn(i, shape.elements())});
    }
    expect_outputs(reference_call(one["op"].get<std::string>(), inputs, attrs_of(one["attrs"])),
                   one);
  }
}

}  // namespace
}  // namespace thimble
