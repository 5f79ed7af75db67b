// slice and slice_backward: rows of neighbours out of a larger tensor, or into one.
#pragma once

#include "backend/cpu/shape/copy_rows.h"
#include "ops/shape/axis_part.h"

namespace thimble {

// kBack: the part is the input, and there are zeros around it where nothing is added into.
template <bool kBack>
class SliceRows final : public Kernel {
 public:
  explicit SliceRows(const Signature& s) : size_(size_of(s.outputs[0].dtype)) {
    name = "own";
    const Shape &x = s.inputs[0].shape, &y = s.outputs[0].shape;
    const AxisPart rows = axis_part(kBack ? y : x, kBack ? x : y, s.attrs);
    rows_ = {rows.outer, rows.part, kBack ? rows.part : rows.whole, kBack ? rows.whole : rows.part};
    begin_ = rows.begin * size_;
  }

  void run(const KernelArgs& args) override {
    const bool add = args.adds_into(0);
    const auto* from = args.inputs[0].as<const std::byte>();
    auto* to = args.outputs[0].as<std::byte>();
    if (kBack && !add) {
      Parts(rows_.outer * rows_.to_pitch * size_, 1).run([&](int, int64_t begin, int64_t end) {
        std::memset(to + begin, 0, static_cast<size_t>(end - begin));
      });
    }
    copy_rows(rows_, args.outputs[0].type.dtype, kBack ? from : from + begin_,
              kBack ? to + begin_ : to, add);
  }

 private:
  const int64_t size_;  // of an element
  CopyRows rows_{};
  int64_t begin_ = 0;  // bytes
};

}  // namespace thimble
