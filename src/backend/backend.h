// The seam between a plan and a device. A backend says which kernel runs a node, what scratch it
// needs and how long it takes; it owns the arena's memory and moves bytes in and out of it.
#pragma once

#include <cstddef>
#include <functional>
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

// Launches that were recorded once, to be made again as a whole.
class Recording {
 public:
  virtual ~Recording() = default;
  virtual void run() = 0;
};

// A point in the order of everything that a device was asked to do.
class Moment {
 public:
  virtual ~Moment() = default;
  virtual void mark() = 0;  // now: behind what was asked for so far
  virtual void wait() = 0;  // until the device has come there; at once where nothing was marked
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

  // True: the arena is in memory of its own, which only copies and kernels reach, and kernels run
  // some time after they were asked for, in order. Only then is anything below of use.
  virtual bool remote() const { return false; }
  // Plain memory that queued copies can read and write while other work goes on.
  virtual std::unique_ptr<Memory> allocate_host(Bytes size) { return allocate(size); }
  // Copies in the order of the kernels. The plain side must be from allocate_host(), and be left
  // alone until the device has come there.
  virtual void queue_copy_in(std::byte* to, std::span<const std::byte> from) { copy_in(to, from); }
  virtual void queue_copy_out(std::span<std::byte> to, const std::byte* from) { copy_out(to, from); }
  virtual std::unique_ptr<Moment> make_moment() { return nullptr; }
  // What `work` launches, without running it now. Null: the device keeps no recordings.
  virtual std::unique_ptr<Recording> record(const std::function<void()>& work) {
    static_cast<void>(work);
    return nullptr;
  }
};

// "cpu", "null" (and "cuda" where built). Throws UserError for another name. `threads` (0: one per
// core) matters on the cpu; `tf32`, whether products of f32 may round their factors to 10 bits, on
// devices that are faster at that.
std::unique_ptr<Backend> make_backend(std::string_view name, int threads, bool tf32 = true);

}  // namespace thimble
