// The seam between a plan and a device. A backend says which kernel runs a node, what scratch it
// needs and how long it takes; it owns the arena's memory and moves bytes in and out of it.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "graph/op.h"

namespace thimble {

// A kernel bound to one signature. Made once at planning time; run() is called for every node of
// that signature, with other addresses each time.
// REQUIRES of run(): no allocation, and the same bits out for the same bits in, wherever they lie.
class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual void run(const KernelArgs& args) = 0;

  std::string name;  // for `plan -v`: "onednn brgconv:avx512_core", "reference"
  Bytes workspace;   // scratch in the arena for the duration of one run
};

// The bytes of one arena, wherever they are.
class Memory {
 public:
  virtual ~Memory() = default;
  virtual std::byte* base() = 0;
  virtual Bytes size() const = 0;
};

class Backend {
 public:
  virtual ~Backend() = default;

  virtual std::string_view name() const = 0;
  // What measured times depend on beside the kernel: the processor, the number of threads. Times
  // measured on one machine are never used on another.
  virtual std::string machine() const = 0;
  // False: plans can be made for it but not run (`null`).
  virtual bool runs() const = 0;
  // The first kernel, fastest to reference, that fits; cached, owned by the backend.
  virtual Kernel& kernel(const Signature& signature) = 0;
  // Modelled time of one run on this device.
  virtual double seconds(const Signature& signature) const = 0;

  virtual std::unique_ptr<Memory> allocate(Bytes size) = 0;
  virtual void copy_in(std::byte* to, std::span<const std::byte> from) = 0;
  virtual void copy_out(std::span<std::byte> to, const std::byte* from) = 0;
  virtual void synchronise() = 0;
  // Around every stretch of kernels of a program: from here to there nothing may allocate.
  virtual void begin_step() {}
  virtual void end_step() {}
};

// "cpu", "null" (and "cuda" where built). Throws UserError for another name.
std::unique_ptr<Backend> make_backend(std::string_view name, int threads);

}  // namespace thimble
