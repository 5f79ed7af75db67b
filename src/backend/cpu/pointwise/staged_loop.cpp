#include "backend/cpu/pointwise/staged_loop.h"

#include "backend/cpu/sixteen_bit.h"
#include "base/error.h"

namespace thimble {
namespace {

constexpr int64_t kSliceElements = 2048;

// Where a loop that starts to count at element `first` finds `room`.
void* counted_from(float* room, int64_t first) {
  const auto bytes = static_cast<uintptr_t>(first) * sizeof(float);
  return reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(room) - bytes);
}

// Rooms begin on cache lines.
int64_t padded(int64_t floats) { return (floats + 15) / 16 * 16; }

}  // namespace

bool can_stage(const Signature& s) {
  bool any = false;
  for (const auto* types : {&s.inputs, &s.outputs}) {
    for (const TensorType& type : *types) {
      if (type.elements() == 0 || type.dtype == DType::f64) return false;
      any |= is_sixteen_bit(type.dtype);
    }
  }
  return any;
}

StagedLoop::StagedLoop(const Signature& s, UnitLoop loop, int64_t units, int64_t cost,
                       uint32_t whole, Finish finish)
    : loop_(loop), finish_(finish), parts_(units, cost) {
  internal_check(s.inputs.size() + s.outputs.size() <= kMostTensors, "too many tensors to stage");
  int64_t longest = 1;
  for (size_t t = 0; t < s.inputs.size() + s.outputs.size(); ++t) {
    const bool input = t < s.inputs.size();
    const TensorType& type = input ? s.inputs[t] : s.outputs[t - s.inputs.size()];
    if (!is_sixteen_bit(type.dtype)) continue;
    stages_[t].whole = input && ((whole >> t) & 1u) != 0;
    if (!stages_[t].whole) stages_[t].per_unit = type.elements() / units;
    longest = std::max(longest, stages_[t].per_unit);
  }
  slice_ = std::max<int64_t>(1, kSliceElements / longest);
  for (size_t t = 0; t < s.inputs.size() + s.outputs.size(); ++t) {
    Stage& stage = stages_[t];
    if (stage.whole) {
      stage.room = shared_;
      shared_ += padded(s.inputs[t].elements());
    } else if (stage.per_unit > 0) {
      stage.room = per_thread_;
      per_thread_ += padded(slice_ * stage.per_unit);
    }
  }
  name = "own, staged";
  workspace = Bytes((shared_ + parts_.count() * per_thread_) * static_cast<int64_t>(sizeof(float)));
}

void StagedLoop::run(const KernelArgs& args) {
  auto* room = reinterpret_cast<float*>(args.workspace);
  for (size_t i = 0; i < args.inputs.size(); ++i) {
    if (!stages_[i].whole) continue;
    widen(args.inputs[i], 0, args.inputs[i].elements(), room + stages_[i].room);
  }
  parts_.run([&](int part, int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end; at += slice_) {
      run_slice(args, room + shared_ + part * per_thread_, at, std::min(end, at + slice_));
    }
  });
}

void StagedLoop::run_slice(const KernelArgs& args, float* room, int64_t begin, int64_t end) {
  std::array<TensorRef, kMostTensors> tensors;
  const size_t inputs = args.inputs.size(), outputs = args.outputs.size();
  for (size_t t = 0; t < inputs + outputs; ++t) {
    const bool input = t < inputs;
    const TensorRef& tensor = input ? args.inputs[t] : args.outputs[t - inputs];
    const Stage& stage = stages_[t];
    tensors[t] = tensor;
    if (stage.whole) {
      tensors[t].data = reinterpret_cast<float*>(args.workspace) + stage.room;
    } else if (stage.per_unit > 0) {
      const int64_t first = begin * stage.per_unit, count = (end - begin) * stage.per_unit;
      if (input || args.adds_into(t - inputs)) widen(tensor, first, count, room + stage.room);
      tensors[t].data = counted_from(room + stage.room, first);
    }
  }
  KernelArgs staged = args;
  staged.inputs = {tensors.data(), inputs};
  staged.outputs = {tensors.data() + inputs, outputs};
  loop_(staged, begin, end);
  for (size_t k = 0; k < outputs; ++k) {
    const Stage& stage = stages_[inputs + k];
    if (stage.per_unit == 0) continue;
    const int64_t first = begin * stage.per_unit, count = (end - begin) * stage.per_unit;
    if (finish_ != nullptr) {
      finish_(args, k, room + stage.room, first, count);
    } else {
      narrow(room + stage.room, args.outputs[k], first, count);
    }
  }
}

}  // namespace thimble
