// A plan bound to a backend and an arena: every kernel is chosen, every address final. run() is the
// whole training step and allocates nothing, except once for the graph that a device may capture.
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
  // Several programs (training, evaluation) may share one arena. REQUIRES: the plan was verified.
  // Graph, backend and arena outlive the program. The arena is at least as large as the plan's.
  Program(const Graph& graph, const Plan& plan, Backend& backend, Memory& arena);

  // Runs `prologue`, then `per_microbatch` for every microbatch, then `epilogue`. `fill`, when
  // given, is called before every micro-batch (gradient accumulation) to write its inputs: a
  // micro-batch may overwrite those that it has read.
  void run(const std::function<void(int microbatch)>& fill = {});
  // The same, timing every call. Slower, same bits.
  void run_traced(Trace& trace);
  // Runs one phase, timed if there is a trace. A step with micro-batches of two sizes runs phases
  // of two programs. A device with memory of its own may return before the phase is finished.
  void run_phase(Phase phase, Trace* trace = nullptr);
  // After the last phase: waits for the results.
  void finish();

  // Bytes for an input before a step, or of a result after it. Other values only where the host can
  // reach the arena.
  std::span<std::byte> bytes_of(ValueId value);
  // Any value that persists between steps (weights, state), on any device.
  HostMapping map_to_host(ValueId value, HostMapping::Use use);
  HostMapping map_part_to_host(ValueId value, int64_t offset, Bytes size, HostMapping::Use use);
  void read(ValueId value, int64_t offset, std::span<std::byte> out);
  void write(ValueId value, int64_t offset, std::span<const std::byte> in);
  Bytes address_of(ValueId value) const;
  // The bytes of the arena that hold no persistent value between steps: how many there are, and
  // `size` of them to write to.
  Bytes free_between_steps() const;
  HostMapping map_free_between_steps(Bytes size);
  template <class T>
  std::span<T> view(ValueId value) {
    const std::span<std::byte> bytes = bytes_of(value);
    return {reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T)};
  }

  // Calls of the plan up to and including the one that first makes `value`.
  size_t calls_until(ValueId value) const;
  // Runs only the first `count` calls of the plan, and `after(call)` after each: for debugging.
  void run_until(size_t count, const std::function<void(size_t call)>& after);
  // An output of a call. REQUIRES: no later call ran.
  HostMapping output_of(size_t call, size_t output);
  // `check` is called within run(), right after the call that first makes `value`. If it throws,
  // nothing later (updates) has happened. On a device with memory of its own, finish() calls it.
  void watch(ValueId value, std::function<void()> check);

  // The end of the highest byte that a kernel was handed so far, from the start of the arena.
  Bytes touched() const { return touched_; }
  const Graph& graph() const { return graph_; }
  // Null: one process alone.
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
  // The phase as a captured graph, where the device has such: captured at the phase's second run.
  void run_or_replay(Phase phase, size_t begin, size_t end);
  std::unique_ptr<CapturedGraph> capture(size_t begin, size_t end);
  CallUse use_of(size_t call) const;  // its reads and writes
  void run_range_traced(size_t begin, size_t end, Trace& trace);

  const Graph& graph_;
  const Plan& plan_;
  Backend& backend_;
  Memory& arena_;
  std::vector<TensorRef> tensors_;  // backing store of the spans in calls_
  std::vector<Bound> calls_;
  std::vector<Bytes> homes_;  // by value: its address between steps, or -1
  size_t microbatch_begin_ = 0;
  size_t microbatch_end_ = 0;
  Bytes touched_;
  size_t watched_ = 0;  // calls before the check; 0: none
  std::function<void()> check_;
  std::unique_ptr<StagingBuffers> staging_;  // on a device with memory of its own
  std::array<std::unique_ptr<CapturedGraph>, 3> captured_graphs_;  // by phase
  std::array<bool, 3> ran_{};
};

}  // namespace thimble
