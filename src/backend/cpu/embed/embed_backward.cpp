// embed_backward: positions are sorted by their tokens, in order; then every row of the table is
// the sum over its own.
//
//   scratch  | first position of each row i32 [V+1] | positions i32 [M] | a row f32 [C] per thread
#include <algorithm>

#include "backend/cpu/cpu_kernel.h"
#include "backend/cpu/parallel.h"
#include "ops/embed/row_lookup.h"

namespace thimble {
namespace {

THIMBLE_FOR_EACH_ISA void add_row(const float* x, int64_t count, float* y) {
  for (int64_t i = 0; i < count; ++i) y[i] += x[i];
}
THIMBLE_FOR_EACH_ISA void finish_row(const float* sums, int64_t count, float scale, bool add,
                                     float* y) {
  for (int64_t i = 0; i < count; ++i) y[i] = (add ? y[i] : 0) + sums[i] * scale;
}

class EmbedBackward final : public Kernel {
 public:
  explicit EmbedBackward(const Signature& s)
      : lookup_(s.outputs[0].shape[0], s.outputs[0].shape[1], s.attrs),
        tokens_(s.inputs[0].elements()),
        parts_(lookup_.rows, lookup_.width) {
    name = "own";
    sorted_bytes_ =
        align_up(Bytes((lookup_.rows + 1 + tokens_) * static_cast<int64_t>(sizeof(int32_t))));
    // Of each thread: sums, a row of dy and a row of the table.
    workspace = sorted_bytes_ + Bytes(3 * parts_.count() * lookup_.width * int64_t{sizeof(float)});
  }

  void run(const KernelArgs& args) override {
    auto* const first = reinterpret_cast<int32_t*>(args.workspace);
    int32_t* const positions = first + lookup_.rows + 1;
    sort(args.inputs[0].as<const int32_t>(), first, positions);
    auto* const rooms = reinterpret_cast<float*>(args.workspace + sorted_bytes_.count);
    const int64_t width = lookup_.width;
    parts_.run([&](int part, int64_t begin, int64_t end) {
      float *const sums = rooms + 3 * part * width, *const dy = sums + width,
                   *const room = dy + width;
      for (int64_t row = begin; row < end; ++row) {
        const bool add = args.adds_into(0);
        if (add && first[row] == first[row + 1]) continue;
        std::fill_n(sums, width, 0.0f);
        for (int32_t i = first[row]; i < first[row + 1]; ++i)
          add_row(as_f32(args.inputs[1], positions[i] * width, width, dy), width, sums);
        float* const to = room_for(args.outputs[0], row * width, room);
        if (add && to == room) widen(args.outputs[0], row * width, width, room);
        finish_row(sums, width, static_cast<float>(lookup_.scale), add, to);
        commit(to, args.outputs[0], row * width, width);
      }
    });
  }

 private:
  // By counting. first[row] counts the row's positions, then is behind them, then where they begin.
  void sort(const int32_t* tokens, int32_t* first, int32_t* positions) const {
    std::fill_n(first, lookup_.rows + 1, 0);
    for (int64_t i = 0; i < tokens_; ++i) {
      if (lookup_.has(tokens[i])) ++first[tokens[i]];
    }
    int32_t behind = 0;
    for (int64_t row = 0; row <= lookup_.rows; ++row) behind = first[row] += behind;
    for (int64_t i = tokens_; i-- > 0;) {
      if (lookup_.has(tokens[i])) positions[--first[tokens[i]]] = static_cast<int32_t>(i);
    }
  }

  const RowLookup lookup_;
  const int64_t tokens_;
  const Parts parts_;
  Bytes sorted_bytes_;
};

std::unique_ptr<Kernel> make(const Signature& s) {
  const bool fits = is_stageable(s.inputs[1].dtype) && s.outputs[0].elements() > 0 &&
                    s.inputs[0].elements() <= INT32_MAX;
  return fits ? std::make_unique<EmbedBackward>(s) : nullptr;
}

}  // namespace

extern const CpuKernel cpu_embed_backward{"embed_backward", make};

}  // namespace thimble
