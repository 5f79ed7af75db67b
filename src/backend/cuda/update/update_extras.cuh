// The factor and the key of an update (ops/update/update_layout.h), on the device.
#pragma once

#include "backend/cuda/update/stochastic_rounding.cuh"
#include "graph/op.h"
#include "ops/update/update_layout.h"

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
  int64_t part_quads;  // of a rank's part; 0: the tensors are whole

  // The factor of the gradient.
  __device__ float gradient_factor() const { return factor != nullptr ? *factor : 1; }
  __device__ UpdateRounding rounding() const {
    if (key == nullptr) return {};
    return {true,
            {philox_key(static_cast<uint64_t>(key[0])), stream, static_cast<uint32_t>(key[1]),
             static_cast<uint32_t>((key[1] >> 32) * part_quads)}};
  }
};

// Where a signature has them.
class ExtraInputs {
 public:
  ExtraInputs(const Signature& s, size_t own_inputs)
      : places_(update_extras(own_inputs, s.attrs)) {}

  UpdateExtras of(const KernelArgs& args) const {
    UpdateExtras extras = {};
    extras.stream = static_cast<uint32_t>(args.attrs->integer("stream", 0));
    if (args.attrs->integer("shard", 0) != 0) extras.part_quads = args.outputs[0].elements() / 4;
    if (places_.factor >= 0) extras.factor = args.inputs[places_.factor].as<float>();
    if (places_.key >= 0) extras.key = args.inputs[places_.key].as<int64_t>();
    return extras;
  }

 private:
  ExtraPlaces places_;
};

}  // namespace thimble
