// count_correct: row by row, whether the number at the label is the largest, and the first such.
#include <limits>

#include "backend/cpu/cpu_kernel.h"
#include "backend/cpu/parallel.h"
#include "backend/cpu/reduce/softmax_rows.h"
#include "backend/cpu/sixteen_bit.h"

namespace thimble {
namespace {

THIMBLE_FOR_EACH_ISA float maximum(const float* x, int64_t count) { return row_maximum(x, count); }

class CountCorrect final : public Kernel {
 public:
  explicit CountCorrect(const Signature& s)
      : rows_(s.inputs[1].elements()),
        columns_(s.inputs[0].elements() / rows_),
        ignored_(s.attrs.integer("ignore_index", -1)),
        parts_(rows_, columns_) {
    name = "own";
    workspace = Bytes(parts_.count() * static_cast<int64_t>(sizeof(int64_t)));
  }

  void run(const KernelArgs& args) override {
    auto* const counts = reinterpret_cast<int64_t*>(args.workspace);
    parts_.run([&](int part, int64_t begin, int64_t end) {
      int64_t count = 0;
      for (int64_t r = begin; r < end; ++r) {
        count += is_right(args.inputs[0], r, args.inputs[1].as<const int32_t>()[r]) ? 1 : 0;
      }
      counts[part] = count;
    });
    int64_t sum = 0;
    for (int part = 0; part < parts_.count(); ++part) sum += counts[part];
    float* const to = args.outputs[0].as<float>();
    *to = (args.adds_into(0) ? *to : 0) + static_cast<float>(sum);
  }

 private:
  static constexpr int64_t kPiece = 1024;

  bool is_right(const TensorRef& logits, int64_t row, int32_t label) const {
    if (label < 0 || label >= columns_ || label == ignored_) return false;
    const int64_t first = row * columns_;
    float one[1];
    const float start = *as_f32(logits, first, 1, one);
    if (start != start) return label == 0;  // nothing is larger than a NaN
    const float expected = *as_f32(logits, first + label, 1, one);
    // Of pieces before the label none may have its equal, of those behind none a larger one.
    for (int64_t c = 0; c < columns_;) {
      const int64_t stop =
          c < label ? std::min<int64_t>(label, c + kPiece) : std::min(columns_, c + kPiece);
      float room[kPiece];
      const float largest = largest_of(as_f32(logits, first + c, stop - c, room), stop - c);
      if (c < label ? !(largest < expected) : largest > expected) return false;
      c = stop;
    }
    return true;
  }

  // Of those that are numbers.
  static float largest_of(const float* x, int64_t count) {
    while (count > 0 && *x != *x) ++x, --count;
    return count > 0 ? maximum(x, count) : -std::numeric_limits<float>::infinity();
  }

  const int64_t rows_, columns_, ignored_;
  const Parts parts_;
};

}  // namespace

extern const CpuKernel cpu_count_correct{"count_correct",
                                         make_where<CountCorrect, stageable_input>};

}  // namespace thimble
