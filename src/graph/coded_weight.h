// A frozen matrix that is kept in fewer bits and decoded where it is read, a tile at a time.
//
//   format   values of the graph                              bytes a number
//   f16      NAME f16 [rows, columns]                         2
//   bf16     NAME bf16 [rows, columns]                        2
//   int8     NAME u8 [rows, columns], NAME.SCB f32 [rows]     1 + 4 / columns
//   nf4      NAME u8 [rows x columns / 2],                    0.516
//            NAME.absmax u8, NAME.nested_absmax f32, NAME.nested_offset f32 [1] (base/nf4.h)
//
// Names and bytes are those of bitsandbytes, so its files are read and written as they are. Nodes
// that read a coded matrix take these values, in this order, as their inputs from 1 on.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "base/nf4.h"
#include "graph/graph.h"

namespace thimble {

enum class CodedFormat : uint8_t { f16, bf16, int8, nf4 };
inline constexpr int kCodedFormats = 4;
std::string_view name_of(CodedFormat format);

// A matrix in a format.
struct CodedMatrix {
  CodedFormat format = CodedFormat::bf16;
  int64_t rows = 0, columns = 0;

  int64_t elements() const { return rows * columns; }
  // Of its values, in their order.
  std::vector<TensorType> types() const;
  // Endings of the values' names, behind the weight's name; the first is empty.
  std::vector<std::string_view> suffixes() const;
  Bytes bytes() const;
};

// The numbers of a matrix, wherever its values lie.
struct CodedNumbers {
  CodedFormat format = CodedFormat::bf16;
  int64_t columns = 0;
  const void* codes = nullptr;
  const float* scales = nullptr;  // int8: of rows
  Nf4Weight nf4 = {};

  // Numbers [first, first + count) of a row, in plain loops.
  void decode(int64_t row, int64_t first, int64_t count, float* to) const;
};
CodedNumbers coded_numbers(const CodedMatrix& matrix, std::span<const TensorRef> values);

// The factor of int8 codes, after their row's scale: 1 / 127.
inline constexpr float kInt8Step = 7.874015718698502e-3F;

// As the attrs of a node say it: format, rows, columns.
CodedMatrix coded_matrix(const Attrs& attrs);
Attrs attrs_of(const CodedMatrix& matrix);

struct CodedWeight {
  CodedMatrix matrix;
  std::vector<ValueId> values;  // in the order of types()
};

// The values of a node that are its coded matrix. REQUIRES: the node reads one.
std::span<const ValueId> coded_values(const Node& node);

// All of int8 and nf4, by their first readers, in the order of their values: others are ordinary
// matrices of another dtype.
std::vector<CodedWeight> find_coded_weights(const Graph& graph);

}  // namespace thimble
