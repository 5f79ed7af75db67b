// A plan bound to a backend and an arena: every kernel chosen, every address final. run() is the
// whole training step, and allocates nothing.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "execute/trace.h"
#include "plan/plan.h"

namespace thimble {

class Program {
 public:
  // Several programs (training, evaluation) may share one arena. REQUIRES: the plan was verified;
  // graph, backend and arena outlive the program; the arena is at least as large as the plan's.
  Program(const Graph& graph, const Plan& plan, Backend& backend, Memory& arena);

  // Runs `begin`, then `each` for every microbatch, then `end`. `fill`, when given, is called before
  // every microbatch to put its inputs in place: of several, each may overwrite those it has read.
  void run(const std::function<void(int microbatch)>& fill = {});
  // The same, timing every step. Slower, same bits.
  void run_traced(Trace& trace);
  // One of the three, once; timed when there is a trace. For steps whose microbatches are of two
  // sizes, hence of two programs.
  void run_phase(Phase phase, Trace* trace = nullptr);

  // Where a value is before a step begins (inputs, persistent values) or after it (results).
  std::span<std::byte> bytes_of(ValueId value);
  Bytes address_of(ValueId value) const;
  // The part of the arena that holds nothing from one step to the next.
  std::span<std::byte> free_between_steps();
  template <class T>
  std::span<T> view(ValueId value) {
    const std::span<std::byte> bytes = bytes_of(value);
    return {reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T)};
  }

  // Steps of the plan up to and including the one that first makes `value`.
  size_t steps_until(ValueId value) const;
  // Runs only the first `count` steps of the plan, calling `after(step)` behind each: for finding
  // out where a number went wrong.
  void run_until(size_t count, const std::function<void(size_t step)>& after);
  // Called right after the step that first makes `value`, in the middle of run(); by throwing, it
  // leaves the step before anything later (updates) has happened.
  void watch(ValueId value, std::function<void()> check);

  // The highest byte that any kernel was handed so far, from the start of the arena.
  Bytes touched() const { return touched_; }
  const Graph& graph() const { return graph_; }
  const Plan& plan() const { return plan_; }

 private:
  struct Bound {
    Kernel* kernel;
    KernelArgs args;
    Bytes end;  // the highest byte of its addresses
  };

  void run_range(size_t begin, size_t end);
  void run_range_traced(size_t begin, size_t end, Trace& trace);

  const Graph& graph_;
  const Plan& plan_;
  Backend& backend_;
  Memory& arena_;
  std::vector<TensorRef> tensors_;  // backing store of the spans in steps_
  std::vector<Bound> steps_;
  std::vector<Bytes> homes_;        // by value: where the caller finds it, or -1
  size_t each_begin_ = 0;
  size_t each_end_ = 0;
  Bytes touched_;
  size_t watched_ = 0;              // steps before the check; 0: none
  std::function<void()> check_;
};

}  // namespace thimble
