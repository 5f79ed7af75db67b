// broadcast_to: rows of neighbours copied, or one number repeated; bits of any type.
#include <cstring>

#include "backend/cpu/cpu_kernel.h"
#include "backend/cpu/parallel.h"
#include "backend/cpu/shape/strided_rows.h"

namespace thimble {
namespace {

THIMBLE_FOR_EACH_ISA void add_row(const float* __restrict x, int64_t count, float* __restrict y) {
  for (int64_t i = 0; i < count; ++i) y[i] += x[i];
}
THIMBLE_FOR_EACH_ISA void add_one(float x, int64_t count, float* y) {
  for (int64_t i = 0; i < count; ++i) y[i] += x;
}

class BroadcastTo final : public Kernel {
 public:
  explicit BroadcastTo(const Signature& s)
      : walk_(s.outputs[0].shape, {broadcast_strides(s.inputs[0].shape, s.outputs[0].shape)}),
        parts_(walk_.rows, walk_.count) {
    name = "own";
  }

  void run(const KernelArgs& args) override {
    parts_.run([&](int, int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const int64_t from = walk_.begin(row)[0], to = row * walk_.count;
        if (args.adds_into(0)) {
          for (int64_t i = 0; i < walk_.count; i += kPiece) {
            add_piece(args, from + i * walk_.steps[0], to + i, std::min(kPiece, walk_.count - i));
          }
        } else if (size_of(args.outputs[0].type.dtype) == 4) {
          copy_row<uint32_t>(args, from, to);
        } else {
          copy_row<uint16_t>(args, from, to);
        }
      }
    });
  }

 private:
  static constexpr int64_t kPiece = 1024;

  template <class Bits>
  void copy_row(const KernelArgs& args, int64_t from, int64_t to) const {
    const Bits* const x = args.inputs[0].as<const Bits>() + from;
    Bits* const y = args.outputs[0].as<Bits>() + to;
    if (walk_.steps[0] == 0) {
      std::fill_n(y, walk_.count, *x);
    } else {
      std::memcpy(y, x, static_cast<size_t>(walk_.count) * sizeof(Bits));
    }
  }

  void add_piece(const KernelArgs& args, int64_t from, int64_t to, int64_t count) const {
    float rooms[2][kPiece];
    const TensorRef& y = args.outputs[0];
    const bool repeats = walk_.steps[0] == 0;
    const float* const x = as_f32(args.inputs[0], from, repeats ? 1 : count, rooms[0]);
    float* const sums = room_for(y, to, rooms[1]);
    if (y.type.dtype != DType::f32) widen(y, to, count, sums);
    repeats ? add_one(*x, count, sums) : add_row(x, count, sums);
    commit(sums, y, to, count);
  }

  const StridedRows<1> walk_;
  const Parts parts_;
};

}  // namespace

extern const CpuKernel cpu_broadcast_to{"broadcast_to",
                                        make_where<BroadcastTo, one_stageable_type>};

}  // namespace thimble
