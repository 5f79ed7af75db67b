// slice and slice_backward: rows of neighbours out of a larger tensor, or into one.
#pragma once

#include "backend/cpu/shape/copy_rows.h"

namespace thimble {

class SliceRows final : public Kernel {
 public:
  // `back`: the part is the input, and there are zeros around it where nothing is added into.
  SliceRows(const Signature& s, bool back) : size_(size_of(s.outputs[0].dtype)), back_(back) {
    name = "own";
    const Shape& whole = back ? s.outputs[0].shape : s.inputs[0].shape;
    const Shape& part = back ? s.inputs[0].shape : s.outputs[0].shape;
    const auto axis = static_cast<int>(s.attrs.integer("axis"));
    const int64_t inner = whole.product(axis + 1, whole.rank());
    const int64_t of_part = part[axis] * inner, of_whole = whole[axis] * inner;
    rows_ = {whole.product(0, axis), of_part, back ? of_part : of_whole, back ? of_whole : of_part};
    begin_ = s.attrs.integer("begin") * inner * size_;
  }

  void run(const KernelArgs& args) override {
    const bool add = args.adds_into(0);
    const auto* from = args.inputs[0].as<const std::byte>();
    auto* to = args.outputs[0].as<std::byte>();
    if (back_ && !add) {
      Parts(rows_.outer * rows_.to_pitch * size_, 1).run([&](int, int64_t begin, int64_t end) {
        std::memset(to + begin, 0, static_cast<size_t>(end - begin));
      });
    }
    copy_rows(rows_, size_, back_ ? from : from + begin_, back_ ? to + begin_ : to, add);
  }

 private:
  const int64_t size_;  // of an element
  const bool back_;
  CopyRows rows_{};
  int64_t begin_ = 0;  // bytes
};

}  // namespace thimble
