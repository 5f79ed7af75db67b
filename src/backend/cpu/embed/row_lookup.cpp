#include "backend/cpu/embed/row_lookup.h"

#include <cstring>

#include "backend/cpu/parallel.h"
#include "ops/embed/row_lookup.h"

namespace thimble {
namespace {

THIMBLE_FOR_EACH_ISA void scale_row(const float* x, int64_t count, float scale, float* y) {
  for (int64_t i = 0; i < count; ++i) y[i] = x[i] * scale;
}

class RowLookupKernel final : public Kernel {
 public:
  explicit RowLookupKernel(const Signature& s)
      : lookup_(s.inputs[0].shape[0], s.inputs[0].shape[1], s.attrs),
        parts_(s.inputs[1].elements(), lookup_.width) {
    name = "own";
    const bool staged = s.inputs[0].dtype != DType::f32 && lookup_.scale != 1;
    if (staged) workspace = Bytes(parts_.count() * lookup_.width * int64_t{sizeof(float)});
  }

  void run(const KernelArgs& args) override {
    const int64_t row_bytes = lookup_.width * size_of(args.inputs[0].type.dtype);
    const auto* table = args.inputs[0].as<const std::byte>();
    auto* y = args.outputs[0].as<std::byte>();
    const auto scale = static_cast<float>(lookup_.scale);
    parts_.run([&](int part, int64_t begin, int64_t end) {
      float* const room = reinterpret_cast<float*>(args.workspace) + part * lookup_.width;
      for (int64_t i = begin; i < end; ++i) {
        const int32_t number = args.inputs[1].as<const int32_t>()[i];
        if (!lookup_.has(number)) {
          std::memset(y + i * row_bytes, 0, static_cast<size_t>(row_bytes));
        } else if (lookup_.scale == 1) {
          std::memcpy(y + i * row_bytes, table + number * row_bytes,
                      static_cast<size_t>(row_bytes));
        } else {
          float* const to = room_for(args.outputs[0], i * lookup_.width, room);
          scale_row(as_f32(args.inputs[0], number * lookup_.width, lookup_.width, room),
                    lookup_.width, scale, to);
          commit(to, args.outputs[0], i * lookup_.width, lookup_.width);
        }
      }
    });
  }

 private:
  const RowLookup lookup_;
  const Parts parts_;
};

}  // namespace

std::unique_ptr<Kernel> make_row_lookup(const Signature& s) {
  const bool fits = is_stageable(s.inputs[0].dtype) && s.outputs[0].elements() > 0;
  return fits ? std::make_unique<RowLookupKernel>(s) : nullptr;
}

}  // namespace thimble
