// A fast CPU kernel: one file of this folder, named as the op it runs; the file name is the
// registration (see cmake/tables.cmake). Ops without a file here run their reference kernel.
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <string_view>

#include "backend/cpu/sixteen_bit.h"
#include "backend/kernel.h"

namespace thimble {

struct CpuKernel {
  std::string_view op;
  // Null when this signature does not fit (a dtype, a shape): the reference kernel runs it then.
  std::unique_ptr<Kernel> (*make)(const Signature& signature) = nullptr;
};

std::span<const CpuKernel* const> all_cpu_kernels();

// The condition of nearly every fast kernel: nothing but f32, and at least one element.
inline bool all_f32(const Signature& signature) {
  const auto fits = [](const TensorType& type) {
    return type.dtype == DType::f32 && type.elements() > 0;
  };
  return std::ranges::all_of(signature.inputs, fits) &&
         std::ranges::all_of(signature.outputs, fits);
}

// The same for kernels that can stage: f32 all over, or one 16-bit float type all over.
inline bool one_stageable_type(const Signature& signature) {
  const DType dtype = signature.outputs[0].dtype;
  const auto fits = [dtype](const TensorType& type) {
    return type.dtype == dtype && type.elements() > 0;
  };
  return is_stageable(dtype) && std::ranges::all_of(signature.inputs, fits) &&
         std::ranges::all_of(signature.outputs, fits);
}

// Of what stages one tensor, whatever the others are.
inline bool stageable(const TensorType& type) {
  return is_stageable(type.dtype) && type.elements() > 0;
}
inline bool stageable_input(const Signature& signature) { return stageable(signature.inputs[0]); }
inline bool stageable_output(const Signature& signature) { return stageable(signature.outputs[0]); }

// CpuKernel::make of a K that takes every signature for which kFits holds.
template <class K, bool (*kFits)(const Signature&)>
std::unique_ptr<Kernel> make_where(const Signature& signature) {
  return kFits(signature) ? std::make_unique<K>(signature) : nullptr;
}

}  // namespace thimble
