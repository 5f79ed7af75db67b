#include "support/planned_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "execute/program.h"
#include "support/interpreter.h"

namespace thimble {

std::optional<std::string> find_other_bits(const Graph& graph, const Plan& plan, Backend& backend,
                                           const Contents& contents) {
  const auto arena = backend.allocate(plan.arena);
  // Bytes that are not written are not zero either.
  std::memset(arena->base(), 0xA7, static_cast<size_t>(plan.arena.count));
  Program program(graph, plan, backend, *arena);
  Interpreter oracle(graph, &backend);
  std::vector<ValueId> inputs, persistent;
  for (size_t v = 0; v < graph.values.size(); ++v) {
    const Value& value = graph.values[v];
    if (value.producer.valid()) continue;
    if (value.role == Role::input) inputs.push_back(make_id<ValueId>(v));
    if (is_persistent(value.role)) persistent.push_back(make_id<ValueId>(v));
  }
  const auto put = [&](ValueId value, const Tensor& tensor, bool both) {
    std::ranges::copy(tensor.bytes(), program.bytes_of(value).begin());
    if (both) oracle[value] = tensor;
  };
  const auto same = [&](ValueId value) {
    return std::ranges::equal(program.bytes_of(value), oracle[value].bytes());
  };
  for (const ValueId value : persistent) put(value, contents(value, 0, 0), true);
  for (int step = 0; step < 2; ++step) {
    program.run([&](int microbatch) {
      for (const ValueId v : inputs) put(v, contents(v, step, microbatch), false);
    });
    for (int microbatch = 0; microbatch < plan.microbatches; ++microbatch) {
      for (const ValueId v : inputs) oracle[v] = contents(v, step, microbatch);
      if (microbatch == 0) oracle.run_phase(Phase::prologue);
      oracle.run_phase(Phase::per_microbatch);
    }
    oracle.run_phase(Phase::epilogue);
    for (const ValueId result : graph.results) {
      if (!same(result)) return fmt::format("'{}' at step {}", graph[result].name, step);
    }
    oracle.commit();
    for (const ValueId value : persistent) {
      if (!same(value)) return fmt::format("'{}' after step {}", graph[value].name, step);
    }
  }
  if (program.touched() != plan.arena) {
    return fmt::format("{} of an arena of {} were touched", to_string(program.touched()),
                       to_string(plan.arena));
  }
  return std::nullopt;
}

}  // namespace thimble
