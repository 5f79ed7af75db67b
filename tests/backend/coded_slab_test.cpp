// Slabs of frozen matrices as kernels of a device decode them, on the host: the numbers of
// CodedNumbers::decode to the bit, and never all of them at a time.
#include "backend/coded_slab.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <cstring>

#include "support/tensor.h"

namespace thimble {
namespace {

constexpr int64_t kGuard = 8;

struct Matrix {
  CodedMatrix is;
  std::vector<Tensor> values;

  explicit Matrix(const CodedMatrix& matrix) : is(matrix) {
    for (const TensorType& type : matrix.types()) {
      values.emplace_back(type);
      const bool codes = type.dtype == DType::u8;
      fill_tensor(values.back(),
                  codes ? Fill{Fill::Kind::bytes} : Fill{Fill::Kind::uniform, 0.5, 1},
                  7 + values.size());
    }
  }
  std::vector<TensorRef> refs() {
    std::vector<TensorRef> made;
    for (Tensor& value : values) made.push_back(value.ref());
    return made;
  }
};

// A slab as a device's threads make it, one group after the other, from the last to the first.
template <class To>
std::vector<To> decoded(Matrix& matrix, const SlabPlace& place) {
  std::vector<To> numbers(static_cast<size_t>(place.rows * place.columns + kGuard));
  const std::vector<TensorRef> values = matrix.refs();
  const Nf4Tables tables = {kNf4Levels.data(), nf4_scale_map().data()};
  const int64_t columns = matrix.is.columns;
  const auto decode = [&](const auto& slab) {
    const auto each = [&](auto wide) {
      for (int64_t i = place.rows * place.columns / wide.value; i-- > 0;) {
        decode_group<wide.value>(slab, columns, place, tables, i, numbers.data());
      }
    };
    if (slab_group(columns, place) == 8) return each(std::integral_constant<int, 8>{});
    each(std::integral_constant<int, 1>{});
  };
  switch (matrix.is.format) {
    case CodedFormat::nf4:
      decode(Nf4Slab<float>{values[0].as<const uint8_t>(), values[1].as<const uint8_t>(),
                            values[2].as<const float>(), values[3].as<const float>()});
      break;
    case CodedFormat::int8:
      decode(Int8Slab<float>{values[0].as<const int8_t>(), values[1].as<const float>()});
      break;
    case CodedFormat::f16:
      decode(StoredSlab<Half>{values[0].as<const Half>()});
      break;
    case CodedFormat::bf16:
      decode(StoredSlab<BFloat16>{values[0].as<const BFloat16>()});
      break;
  }
  return numbers;
}

template <class To>
void check_slabs(Matrix& matrix, bool rows) {
  const CodedNumbers numbers = coded_numbers(matrix.is, matrix.refs());
  const int64_t wide = rows ? matrix.is.rows : matrix.is.columns;
  const int64_t deep = rows ? matrix.is.columns : matrix.is.rows;
  const int64_t each = slab_columns(wide, deep, sizeof(To));
  ASSERT_LT(each, wide);
  for (int64_t first = 0; first < wide; first += each) {
    const int64_t some = std::min(each, wide - first);
    const SlabPlace place = rows ? SlabPlace{first, 0, some, matrix.is.columns}
                                 : SlabPlace{0, first, matrix.is.rows, some};
    const std::vector<To> got = decoded<To>(matrix, place);
    std::vector<float> row(static_cast<size_t>(place.columns));
    for (int64_t r = 0; r < place.rows; ++r) {
      numbers.decode(place.row + r, place.column, place.columns, row.data());
      for (int64_t c = 0; c < place.columns; ++c) {
        const To expected(row[static_cast<size_t>(c)]);
        ASSERT_EQ(
            std::memcmp(&got[static_cast<size_t>(r * place.columns + c)], &expected, sizeof(To)), 0)
            << "row " << place.row + r << ", column " << place.column + c;
      }
    }
    for (int64_t g = 0; g < kGuard; ++g) {
      ASSERT_EQ(static_cast<float>(got[static_cast<size_t>(place.rows * place.columns + g)]), 0);
    }
  }
}

TEST(CodedSlabs, DecodeToTheReferencesBits) {
  for (const CodedFormat format :
       {CodedFormat::nf4, CodedFormat::int8, CodedFormat::bf16, CodedFormat::f16}) {
    for (const auto& [rows, columns] : {std::pair<int64_t, int64_t>{9, 7},
                                        {70, 128},
                                        {70, 192},
                                        {33, 200},
                                        {576, 72},
                                        {1030, 65}}) {
      Matrix matrix({format, rows, columns});
      for (const bool by_rows : {true, false}) {
        SCOPED_TRACE(fmt::format("{} {} x {}, slabs of {}", name_of(format), rows, columns,
                                 by_rows ? "rows" : "columns"));
        check_slabs<float>(matrix, by_rows);
        check_slabs<BFloat16>(matrix, by_rows);
        check_slabs<Half>(matrix, by_rows);
      }
    }
  }
}

// Whatever the shape: a part of the matrix alone, within the limit where a column is.
TEST(CodedSlabs, AreNeverTheWholeMatrix) {
  for (int64_t wide = 2; wide < 200000; wide += 1 + wide / 3) {
    for (int64_t deep = 1; deep < 200000; deep += 1 + deep / 3) {
      for (const int64_t bytes : {2, 4}) {
        const int64_t columns = slab_columns(wide, deep, bytes);
        ASSERT_GE(columns, 1);
        ASSERT_LT(columns, wide) << wide << " x " << deep;
        ASSERT_LE(columns * deep * bytes, std::max(kMostSlabBytes, deep * bytes));
      }
    }
  }
  EXPECT_EQ(slab_columns(4096, 14336, 2), 512);   // 14 MiB of 112
  EXPECT_EQ(slab_columns(14336, 4096, 2), 2048);  // 16 MiB
  EXPECT_EQ(slab_columns(576, 576, 2), 320);      // and 256
}

}  // namespace
}  // namespace thimble
