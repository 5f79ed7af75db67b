// Shared by add, sub, mul and div: operands of the result's shape, repeated along its leading axes
// (a bias, a scalar), or along any others.
#pragma once

#include "backend/cpu/pointwise/elementwise.h"
#include "backend/cpu/shape/strided_rows.h"
#include "backend/cpu/sixteen_bit.h"

namespace thimble {

// Whether `operand` is the trailing axes of `result`, so that it repeats every operand.elements().
inline bool repeats_whole(const Shape& operand, const Shape& result) {
  int rank = operand.rank();
  while (rank > 0 && operand.back(rank) == 1) --rank;
  for (int n = 1; n <= rank; ++n) {
    if (operand.back(n) != result.back(n)) return false;
  }
  return true;
}

template <class Combine>
THIMBLE_INLINE void combine_range(const KernelArgs& args, int64_t begin, int64_t end,
                                  const Combine& combine) {
  const int64_t size_a = args.inputs[0].elements(), size_b = args.inputs[1].elements();
  const float* a = args.inputs[0].as<const float>();
  const float* b = args.inputs[1].as<const float>();
  float* y = args.outputs[0].as<float>();
  const int64_t period = std::min(size_a, size_b);
  const bool add = args.adds_into(0);
  // From one end of the shorter operand to the next.
  for (int64_t at = begin; at < end;) {
    const int64_t stop = period == 1 ? end : std::min(end, (at / period + 1) * period);
    const float* from_a = a + at % size_a;
    const float* from_b = b + at % size_b;
    if (size_a == 1) {
      const float one = *a;
      map_range(y + at, 0, stop - at, add, [=](int64_t i) { return combine(one, from_b[i]); });
    } else if (size_b == 1) {
      const float one = *b;
      map_range(y + at, 0, stop - at, add, [=](int64_t i) { return combine(from_a[i], one); });
    } else {
      map_range(y + at, 0, stop - at, add,
                [=](int64_t i) { return combine(from_a[i], from_b[i]); });
    }
    at = stop;
  }
}

// Neighbours of a row, or one number for all of them.
struct RowOperand {
  const float* at;
  bool repeats;
};

template <class Combine>
THIMBLE_INLINE void combine_row(RowOperand a, RowOperand b, int64_t count, bool add, float* y,
                                const Combine& combine) {
  if (a.repeats && b.repeats) {
    const float one = combine(*a.at, *b.at);
    map_range(y, 0, count, add, [=](int64_t) { return one; });
  } else if (a.repeats) {
    const float one = *a.at;
    map_range(y, 0, count, add, [=](int64_t i) { return combine(one, b.at[i]); });
  } else if (b.repeats) {
    const float one = *b.at;
    map_range(y, 0, count, add, [=](int64_t i) { return combine(a.at[i], one); });
  } else {
    map_range(y, 0, count, add, [=](int64_t i) { return combine(a.at[i], b.at[i]); });
  }
}

using RowPair = void (*)(RowOperand a, RowOperand b, int64_t count, bool add, float* y);

// Operands that repeat along any axes, row by row; 16-bit rows in pieces that fit the stack.
class RepeatingBinary final : public Kernel {
 public:
  RepeatingBinary(const Signature& s, RowPair loop)
      : loop_(loop),
        walk_(s.outputs[0].shape, {broadcast_strides(s.inputs[0].shape, s.outputs[0].shape),
                                   broadcast_strides(s.inputs[1].shape, s.outputs[0].shape)}),
        parts_(walk_.rows, walk_.count) {
    name = "own";
  }

  void run(const KernelArgs& args) override {
    parts_.run([&](int, int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const auto from = walk_.begin(row);
        for (int64_t i = 0; i < walk_.count; i += kPiece) {
          run_piece(args, {from[0] + i * walk_.steps[0], from[1] + i * walk_.steps[1]},
                    row * walk_.count + i, std::min(kPiece, walk_.count - i));
        }
      }
    });
  }

 private:
  static constexpr int64_t kPiece = 1024;

  void run_piece(const KernelArgs& args, const std::array<int64_t, 2>& from, int64_t to,
                 int64_t count) const {
    float rooms[3][kPiece];
    const auto operand = [&](size_t i) {
      const bool repeats = walk_.steps[i] == 0;
      return RowOperand{as_f32(args.inputs[i], from[i], repeats ? 1 : count, rooms[i]), repeats};
    };
    float* const y = room_for(args.outputs[0], to, rooms[2]);
    const bool add = args.adds_into(0);
    if (add && args.outputs[0].type.dtype != DType::f32) widen(args.outputs[0], to, count, y);
    loop_(operand(0), operand(1), count, add, y);
    commit(y, args.outputs[0], to, count);
  }

  const RowPair loop_;
  const StridedRows<2> walk_;
  const Parts parts_;
};

// As CpuKernel::make.
template <RangeLoop kLoop, RowPair kRows>
std::unique_ptr<Kernel> binary(const Signature& s) {
  const Shape& y = s.outputs[0].shape;
  // One of them must be as large as the result: the loop follows the other's ends.
  const int64_t largest = std::max(s.inputs[0].elements(), s.inputs[1].elements());
  if (repeats_whole(s.inputs[0].shape, y) && repeats_whole(s.inputs[1].shape, y) &&
      largest == y.elements()) {
    return make_elementwise(s, kLoop);
  }
  return one_stageable_type(s) ? std::make_unique<RepeatingBinary>(s, kRows) : nullptr;
}

}  // namespace thimble
