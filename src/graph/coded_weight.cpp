#include "graph/coded_weight.h"

#include <algorithm>
#include <array>

#include "base/error.h"

namespace thimble {
namespace {

constexpr std::array<std::string_view, kCodedFormats> kNames = {"f16", "bf16", "int8", "nf4"};

}  // namespace

std::string_view name_of(CodedFormat format) { return kNames[static_cast<size_t>(format)]; }

std::vector<TensorType> CodedMatrix::types() const {
  const Shape whole{rows, columns};
  switch (format) {
    case CodedFormat::f16:
      return {{whole, DType::f16}};
    case CodedFormat::bf16:
      return {{whole, DType::bf16}};
    case CodedFormat::int8:
      return {{whole, DType::u8}, {{rows}, DType::f32}};
    case CodedFormat::nf4:
      return {{{nf4_code_bytes(elements())}, DType::u8},
              {{nf4_blocks(elements())}, DType::u8},
              {{nf4_nested(elements())}, DType::f32},
              {{1}, DType::f32}};
  }
  return {};
}

std::vector<std::string_view> CodedMatrix::suffixes() const {
  switch (format) {
    case CodedFormat::f16:
    case CodedFormat::bf16:
      return {""};
    case CodedFormat::int8:
      return {"", ".SCB"};
    case CodedFormat::nf4:
      return {"", ".absmax", ".nested_absmax", ".nested_offset"};
  }
  return {};
}

Bytes CodedMatrix::bytes() const {
  Bytes sum;
  for (const TensorType& type : types()) sum += type.bytes();
  return sum;
}

void CodedNumbers::decode(int64_t row, int64_t first, int64_t count, float* to) const {
  const int64_t begin = row * columns + first;
  const auto each = [&](auto&& number) {
    for (int64_t i = 0; i < count; ++i) to[i] = number(begin + i);
  };
  switch (format) {
    case CodedFormat::f16:
      return each(
          [&](int64_t i) { return static_cast<float>(static_cast<const Half*>(codes)[i]); });
    case CodedFormat::bf16:
      return each(
          [&](int64_t i) { return static_cast<float>(static_cast<const BFloat16*>(codes)[i]); });
    case CodedFormat::int8:
      return each([&](int64_t i) {
        return static_cast<float>(static_cast<const int8_t*>(codes)[i]) * scales[row] * kInt8Step;
      });
    case CodedFormat::nf4:
      return nf4_decode(nf4, begin, count, to);
  }
}

CodedNumbers coded_numbers(const CodedMatrix& matrix, std::span<const TensorRef> values) {
  CodedNumbers numbers = {matrix.format, matrix.columns, values[0].data};
  if (matrix.format == CodedFormat::int8) numbers.scales = values[1].as<const float>();
  if (matrix.format == CodedFormat::nf4) {
    numbers.nf4 = {values[0].as<const uint8_t>(), values[1].as<const uint8_t>(),
                   values[2].as<const float>(), *values[3].as<const float>()};
  }
  return numbers;
}

CodedMatrix coded_matrix(const Attrs& attrs) {
  const std::string_view name = attrs.text("format", "");
  const auto at = std::ranges::find(kNames, name);
  user_check(at != kNames.end(),
             "[coded_matmul] there is no format '{}'; known: f16, bf16, int8, nf4", name);
  return {static_cast<CodedFormat>(at - kNames.begin()), attrs.integer("rows"),
          attrs.integer("columns")};
}

Attrs attrs_of(const CodedMatrix& matrix) {
  return {{"format", std::string(name_of(matrix.format))},
          {"rows", matrix.rows},
          {"columns", matrix.columns}};
}

std::span<const ValueId> coded_values(const Node& node) {
  return std::span(node.inputs).subspan(1);
}

std::vector<CodedWeight> find_coded_weights(const Graph& graph) {
  std::vector<CodedWeight> found;
  std::vector<bool> known(graph.values.size(), false);
  for (const Node& node : graph.nodes) {
    if (!node.op->decodes || known[node.inputs[1].at()]) continue;
    known[node.inputs[1].at()] = true;
    const CodedMatrix matrix = coded_matrix(node.attrs);
    if (matrix.format == CodedFormat::f16 || matrix.format == CodedFormat::bf16) continue;
    const std::span<const ValueId> values = coded_values(node);
    found.push_back({matrix, {values.begin(), values.end()}});
  }
  std::ranges::sort(found, {}, [](const CodedWeight& weight) { return weight.values[0]; });
  return found;
}

}  // namespace thimble
