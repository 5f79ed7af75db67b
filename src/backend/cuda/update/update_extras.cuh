// What may follow the inputs that an update names itself, where its attrs say so:
//   factor f32 [1]            scaled (0, 1): what the gradient is multiplied by; 0: nothing changes
//   key i64 [2] = seed, step  rounding (nearest, stochastic): of the random bits; attr stream
#pragma once

#include "backend/cuda/update/stochastic_rounding.cuh"
#include "graph/op.h"

namespace thimble {

// How an update rounds what it stores.
struct UpdateRounding {
  bool stochastic;
  RoundingWords words;

  // Leaves numbers that are rounded to the nearest as they are: storing does that.
  __device__ void apply(Quad& x, DType dtype, int64_t quad, int output) const {
    if (stochastic) words.round(x, dtype, quad, output);
  }
};

// Null: not there.
struct UpdateExtras {
  const float* factor;
  const int64_t* key;
  uint32_t stream;

  // What the gradient is multiplied by.
  __device__ float gradient_factor() const { return factor != nullptr ? *factor : 1; }
  __device__ UpdateRounding rounding() const {
    if (key == nullptr) return {};
    return {true,
            {philox_key(static_cast<uint64_t>(key[0])), stream, static_cast<uint32_t>(key[1])}};
  }
};

// Where a signature has them.
class ExtraInputs {
 public:
  ExtraInputs(const Signature& s, size_t own_inputs)
      : own_(own_inputs),
        scaled_(s.attrs.integer("scaled", 0) != 0),
        stochastic_(s.attrs.text("rounding", "nearest") == "stochastic") {}

  UpdateExtras of(const KernelArgs& args) const {
    size_t next = own_;
    UpdateExtras extras = {};
    extras.stream = static_cast<uint32_t>(args.attrs->integer("stream", 0));
    if (scaled_) extras.factor = args.inputs[next++].as<float>();
    if (stochastic_) extras.key = args.inputs[next++].as<int64_t>();
    return extras;
  }

 private:
  size_t own_;
  bool scaled_, stochastic_;
};

}  // namespace thimble
