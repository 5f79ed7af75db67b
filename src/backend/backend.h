// The seam between a plan and a device. A backend says which kernel runs a node, what scratch it
// needs and how long it takes; it owns the arena's memory and moves bytes in and out of it.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "backend/kernel.h"
#include "base/error.h"

namespace thimble {

// The device is missing, cannot do what is asked, or was lost with all that its memory held.
class DeviceError : public UserError {
 public:
  using UserError::UserError;
};

// Its memory is too small for what is asked.
class NoRoom : public DeviceError {
 public:
  using DeviceError::DeviceError;
};

// One thing to record: begins when those before it in its stream are over, and those it waits for.
struct Launch {
  std::function<void()> make;
  int stream = 0;
  std::vector<int> waits_for = {};  // earlier ones of other streams
};

// Launches that were captured once, to be replayed as a whole (a CUDA graph).
class CapturedGraph {
 public:
  virtual ~CapturedGraph() = default;
  virtual void run() = 0;
};

// A point in the order of everything that a device was asked to do.
class Event {
 public:
  virtual ~Event() = default;
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

  // Collectives run over these ranks from now on. REQUIRES: they outlive the backend.
  virtual void join(Communicator& ranks) { ranks_ = &ranks; }
  // Null: this process stands for all ranks of a plan.
  Communicator* ranks() const { return ranks_; }

  virtual std::string_view name() const = 0;
  // The name that measured times are kept under: the processor and the number of threads, which
  // times depend on beside the kernel. Times of one machine are never used on another.
  virtual std::string machine() const = 0;
  // False: plans can be made for it but not run (`null`).
  virtual bool runs() const = 0;
  // The first kernel, fastest to reference, that fits; cached, owned by the backend.
  virtual Kernel& kernel(const Signature& signature) = 0;
  // Frees all other kernels. One that is asked for later is created anew.
  virtual void keep_kernels(const std::unordered_set<Signature, SignatureHash>& used) {
    static_cast<void>(used);
  }
  // Modelled time of one run on this device.
  virtual double seconds(const Signature& signature) const = 0;

  virtual std::unique_ptr<Memory> allocate(Bytes size) = 0;
  // Of a device with memory of its own: what is in use there beside an arena of that size, by the
  // device's own software and by other programs.
  virtual std::optional<Bytes> in_use_beside(Bytes arena) const {
    static_cast<void>(arena);
    return std::nullopt;
  }
  // Of a device with memory of its own: what is free there now.
  virtual std::optional<Bytes> free_memory() const { return std::nullopt; }
  virtual void copy_in(std::byte* to, std::span<const std::byte> from) = 0;
  virtual void copy_out(std::span<std::byte> to, const std::byte* from) = 0;
  virtual void synchronise() = 0;
  // Around every stretch of kernels of a program: from here to there nothing may allocate.
  virtual void begin_step() {}
  virtual void end_step() {}

  // How long the device takes for what `work` asks of it, which is done when this returns.
  virtual double seconds_for(const std::function<void()>& work) = 0;

  // True: the arena is in memory of its own, which only copies and kernels reach, and kernels run
  // some time after they were asked for, in order. Only then is anything below of use.
  virtual bool has_device_memory() const { return false; }
  // Plain memory that queued copies can read and write while other work goes on.
  virtual std::unique_ptr<Memory> allocate_host(Bytes size) { return allocate(size); }
  // Copies in the order of the kernels. The plain side must be from allocate_host(), and be left
  // alone until the device has come there.
  virtual void queue_copy_in(std::byte* to, std::span<const std::byte> from) { copy_in(to, from); }
  virtual void queue_copy_out(std::span<std::byte> to, const std::byte* from) {
    copy_out(to, from);
  }
  virtual std::unique_ptr<Event> make_event() { return nullptr; }
  // How many launches it can work on at the same time.
  virtual int streams() const { return 1; }
  // The launches, in an order in which they could be made one by one, without making them now.
  // Null: the device keeps no captured graphs.
  virtual std::unique_ptr<CapturedGraph> capture(std::span<const Launch> launches) {
    static_cast<void>(launches);
    return nullptr;
  }

 private:
  Communicator* ranks_ = nullptr;
};

struct DeviceOptions {
  int threads = 0;   // on the cpu; 0: one per core
  bool tf32 = true;  // on cuda: products of f32 may round their factors to 10 bits
  int streams = 4;   // on cuda: kernels of a step that may run at the same time
};

struct DeviceTraits {
  bool runs = true;         // Backend::runs()
  bool has_memory = false;  // Backend::has_device_memory()
};
// A kind of device, whether or not one is here: a record in the file of its backend.
struct DeviceDef {
  std::string_view name;
  std::unique_ptr<Backend> (*make)(const DeviceOptions& options) = nullptr;
  DeviceTraits traits = {};
};
// Of an unknown device: the usual ones.
DeviceTraits device_traits(std::string_view name);
// The name of the device that is meant where none is said, and of the one that plans and runs
// nothing.
std::string_view usual_device();
std::string_view planning_device();

// Throws UserError for a name that no device has.
std::unique_ptr<Backend> make_backend(std::string_view name, const DeviceOptions& options);
inline std::unique_ptr<Backend> make_backend(std::string_view name, int threads) {
  return make_backend(name, DeviceOptions{.threads = threads});
}

}  // namespace thimble
