// A plan bound to a backend and an arena: every kernel chosen, every address final. run() is the
// whole training step, and allocates nothing (but the captured graph that a device may make of it,
// once).
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "execute/host_mapping.h"
#include "execute/staging_buffers.h"
#include "execute/streams.h"
#include "execute/trace.h"
#include "plan/plan.h"

namespace thimble {

class Program {
 public:
  // Several programs (training, evaluation) may share one arena. REQUIRES: the plan was verified. Graph,
  // backend and arena outlive the program. The arena is at least as large as the plan's.
  Program(const Graph& graph, const Plan& plan, Backend& backend, Memory& arena);

  // Runs `prologue`, then `per_microbatch` for every microbatch, then `epilogue`. `fill`, when given, is called
  // before every microbatch to put its inputs in place: of several, each may overwrite those it has
  // read.
  void run(const std::function<void(int microbatch)>& fill = {});
  // The same, timing every call. Slower, same bits.
  void run_traced(Trace& trace);
  // One of the three, once; timed when there is a trace. For steps whose microbatches are of two
  // sizes, hence of two programs. On a remote device it returns while the phase is still under way.
  void run_phase(Phase phase, Trace* trace = nullptr);
  // After the last phase: until results are there.
  void finish();

  // Where the caller puts inputs before a step begins and finds results after it. Of other values,
  // only where the host can reach the arena.
  std::span<std::byte> bytes_of(ValueId value);
  // Any value that is there between steps (weights, state), on any device.
  HostMapping map_to_host(ValueId value, HostMapping::Use use);
  HostMapping map_part_to_host(ValueId value, int64_t offset, Bytes size, HostMapping::Use use);
  void read(ValueId value, int64_t offset, std::span<std::byte> out);
  void write(ValueId value, int64_t offset, std::span<const std::byte> in);
  Bytes address_of(ValueId value) const;
  // The part of the arena that holds nothing from one step to the next: how much, and some of its
  // bytes, to be written to.
  Bytes free_between_steps() const;
  HostMapping map_free_between_steps(Bytes size);
  template <class T>
  std::span<T> view(ValueId value) {
    const std::span<std::byte> bytes = bytes_of(value);
    return {reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T)};
  }

  // Calls of the plan up to and including the one that first makes `value`.
  size_t calls_until(ValueId value) const;
  // Runs only the first `count` calls of the plan, calling `after(call)` behind each: for finding
  // out where a number went wrong.
  void run_until(size_t count, const std::function<void(size_t call)>& after);
  // An output of the call that ran last.
  HostMapping output_of(size_t call, size_t output);
  // Called right after the call that first makes `value`, in the middle of run(); by throwing, it
  // leaves the step before anything later (updates) has happened. On a remote device, which has no
  // middle, it is called by finish().
  void watch(ValueId value, std::function<void()> check);

  // The highest byte that any kernel was handed so far, from the start of the arena.
  Bytes touched() const { return touched_; }
  const Graph& graph() const { return graph_; }
  // Null: it is the only one.
  Communicator* ranks() const { return backend_.ranks(); }
  const Plan& plan() const { return plan_; }

 private:
  struct Bound {
    Kernel* kernel;
    KernelArgs args;
    Bytes end;  // the highest byte of its addresses
  };

  Bytes persistent_end() const;
  std::byte* home_of(ValueId value) const { return arena_.base() + address_of(value).count; }
  void run_range(size_t begin, size_t end);
  // The phase as a captured graph, where the device keeps such: made when the phase is run again.
  void run_or_replay(Phase phase, size_t begin, size_t end);
  std::unique_ptr<CapturedGraph> capture(size_t begin, size_t end);
  CallUse use_of(size_t call) const;  // what it reads and writes
  void run_range_traced(size_t begin, size_t end, Trace& trace);

  const Graph& graph_;
  const Plan& plan_;
  Backend& backend_;
  Memory& arena_;
  std::vector<TensorRef> tensors_;  // backing store of the spans in calls_
  std::vector<Bound> calls_;
  std::vector<Bytes> homes_;  // by value: where the caller finds it, or -1
  size_t each_begin_ = 0;
  size_t each_end_ = 0;
  Bytes touched_;
  size_t watched_ = 0;  // calls before the check; 0: none
  std::function<void()> check_;
  std::unique_ptr<StagingBuffers> staging_;                        // on a remote device
  std::array<std::unique_ptr<CapturedGraph>, 3> captured_graphs_;  // by phase
  std::array<bool, 3> ran_{};
};

}  // namespace thimble
