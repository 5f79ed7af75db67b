#include "execute/program.h"

#include <algorithm>

#include "base/error.h"
#include "comm/communicator.h"
#include "execute/horizontal_fusion.h"
#include "graph/updates.h"

namespace thimble {
namespace {

// Tells the backend where a stretch of kernels begins and, whatever happens, where it ends.
class InsideStep {
 public:
  explicit InsideStep(Backend& backend) : backend_(backend) { backend_.begin_step(); }
  ~InsideStep() { backend_.end_step(); }
  InsideStep(const InsideStep&) = delete;
  InsideStep& operator=(const InsideStep&) = delete;

 private:
  Backend& backend_;
};

// An update of parts as this rank runs it: on what its parts hold of the whole, so that every element is
// computed as it would be in the whole. Other nodes as they are.
Signature cut_to_rank(const Graph& graph, const Node& node, Signature s,
                      const Communicator* ranks) {
  if (ranks == nullptr || node.op->updates.empty() || node.op->collective) return s;
  const Value& first = graph[node.inputs[0]];
  if (!first.is_shard()) return s;
  const auto cut = [&](const Value& value, TensorType& type) {
    if (!value.is_shard() && type.shape != first.type.shape) return;
    const int64_t part = type.elements();
    const int64_t whole = (value.is_shard() ? value.unsharded : first.unsharded).elements();
    type.shape = {std::clamp<int64_t>(whole - ranks->rank() * part, 0, part)};
  };
  for (size_t i = 0; i < node.inputs.size(); ++i) cut(graph[node.inputs[i]], s.inputs[i]);
  for (const Alias& update : updates_of(node)) {
    s.outputs[static_cast<size_t>(update.output)] = s.inputs[static_cast<size_t>(update.input)];
  }
  return s;
}

// A byte outside of the arena that every collective writes, so that ranks meet in the order of the plan,
// on whatever streams.
constexpr ByteRange kToken = {-1, 0};

// In place of a call on nothing.
class NothingToDo final : public Kernel {
 public:
  void run(const KernelArgs&) override {}
};

}  // namespace

Program::Program(const Graph& graph, const Plan& plan, Backend& backend, Memory& arena)
    : graph_(graph), plan_(plan), backend_(backend), arena_(arena) {
  internal_check(arena.size() >= plan.arena, "the arena is smaller than the plan");
  size_t tensors = 0;
  for (const PlannedCall& call : plan.calls) tensors += call.inputs.size() + call.outputs.size();
  tensors_.reserve(tensors);  // spans below point into it
  homes_ = plan.sources;

  for (const PlannedCall& call : plan.calls) {
    const Node& node = graph[call.node];
    Bound bound{};
    const Signature signature =
        cut_to_rank(graph, node, signature_of(graph, call.node), backend.ranks());
    const bool nothing = !signature.inputs.empty() && signature.inputs[0].elements() == 0 &&
                         !node.op->updates.empty();
    static NothingToDo nothing_to_do;
    bound.kernel = nothing ? &nothing_to_do : &backend.kernel(signature);
    bound.args.attrs = &node.attrs;
    bound.args.ranks = backend.ranks();
    const auto bind = [&](const std::vector<ValueId>& values, const std::vector<Bytes>& at,
                          const std::vector<TensorType>& types) {
      const size_t first = tensors_.size();
      for (size_t i = 0; i < values.size(); ++i) {
        tensors_.push_back({arena.base() + at[i].count, types[i]});
        bound.end = std::max(bound.end, align_up(at[i] + graph[values[i]].type.bytes()));
      }
      return std::span<const TensorRef>(tensors_.data() + first, values.size());
    };
    bound.args.inputs = bind(node.inputs, call.inputs, signature.inputs);
    bound.args.outputs = bind(node.outputs, call.outputs, signature.outputs);
    for (size_t k = 0; k < node.outputs.size(); ++k) {
      if (node.added_into(k).valid()) bound.args.accumulate |= 1u << k;
      homes_[node.outputs[k].at()] = call.outputs[k];
    }
    internal_check(call.workspace_size >= bound.kernel->workspace,
                   "a kernel wants more scratch than was planned for it");
    if (call.workspace_size.count > 0) {
      bound.args.workspace = arena.base() + call.workspace_at.count;
      bound.end = std::max(bound.end, align_up(call.workspace_at + call.workspace_size));
    }
    calls_.push_back(bound);
    if (node.phase == Phase::prologue) microbatch_begin_ = calls_.size();
    if (node.phase != Phase::epilogue) microbatch_end_ = calls_.size();
  }
  for (size_t v = 0; v < graph.values.size(); ++v) {
    if (plan.sources[v].count < 0) continue;
    touched_ = std::max(touched_, align_up(plan.sources[v] + graph.values[v].type.bytes()));
  }
  if (backend.has_device_memory())
    staging_ = std::make_unique<StagingBuffers>(graph, homes_, backend, arena);
}

void Program::run_range(size_t begin, size_t end) {
  const InsideStep inside(backend_);
  for (size_t s = begin; s < end; ++s) {
    Bound& call = calls_[s];
    call.kernel->run(call.args);
    touched_ = std::max(touched_, call.end);
    if (s + 1 == watched_ && !staging_) check_();
  }
}

CallUse Program::use_of(size_t s) const {
  const KernelArgs& args = calls_[s].args;
  const auto range = [&](const void* data, Bytes size) {
    const int64_t at = static_cast<const std::byte*>(data) - arena_.base();
    return ByteRange{at, at + size.count};
  };
  CallUse use;
  for (const TensorRef& t : args.inputs) use.reads.push_back(range(t.data, t.type.bytes()));
  for (const TensorRef& t : args.outputs) use.writes.push_back(range(t.data, t.type.bytes()));
  if (args.workspace) use.writes.push_back(range(args.workspace, calls_[s].kernel->workspace));
  if (graph_[plan_.calls[s].node].op->collective) use.writes.push_back(kToken);
  use.seconds = backend_.seconds(signature_of(graph_, plan_.calls[s].node));
  return use;
}

std::unique_ptr<CapturedGraph> Program::capture(size_t begin, size_t end) {
  std::vector<LaunchGroup> calls;
  for (size_t s = begin; s < end; ++s) {
    if (graph_[plan_.calls[s].node].op->view) continue;  // nothing runs
    calls.push_back({calls_[s].kernel, {&calls_[s].args}, use_of(s)});
  }
  const std::vector<LaunchGroup> groups = group_launches(std::move(calls));
  std::vector<CallUse> uses;
  for (const LaunchGroup& group : groups) uses.push_back(group.use);
  const std::vector<StreamCall> order = spread_over_streams(uses, backend_.streams());
  std::vector<Launch> launches;
  for (size_t i = 0; i < order.size(); ++i) {
    launches.push_back(
        {[&group = groups[i]] { group.run(); }, order[i].stream, order[i].waits_for});
  }
  return backend_.capture(launches);
}

void Program::run_or_replay(Phase phase, size_t begin, size_t end) {
  std::unique_ptr<CapturedGraph>& captured = captured_graphs_[static_cast<size_t>(phase)];
  bool& ran = ran_[static_cast<size_t>(phase)];
  // The first run is a plain one: libraries load their code when it is first used.
  if (ran && staging_ && captured == nullptr && begin < end) {
    captured = capture(begin, end);
  }
  if (captured) {
    captured->run();
  } else {
    run_range(begin, end);
  }
  ran = true;
}

size_t Program::calls_until(ValueId value) const {
  const NodeId producer = graph_[value].producer;
  for (size_t s = 0; s < plan_.calls.size(); ++s) {
    if (plan_.calls[s].node == producer) return s + 1;
  }
  internal_check(false, "no call makes the value");
  return 0;
}

void Program::run_until(size_t count, const std::function<void(size_t)>& after) {
  if (staging_) {
    for (const Phase phase : {Phase::prologue, Phase::per_microbatch}) staging_->upload(phase);
  }
  for (size_t s = 0; s < count; ++s) {
    calls_[s].kernel->run(calls_[s].args);
    backend_.synchronise();
    after(s);
  }
}

void Program::watch(ValueId value, std::function<void()> check) {
  watched_ = calls_until(value);
  check_ = std::move(check);
}

void Program::run_range_traced(size_t begin, size_t end, Trace& trace) {
  trace.call_seconds.resize(calls_.size(), 0);
  for (size_t s = begin; s < end; ++s) {
    const double seconds = backend_.seconds_for([&] { run_range(s, s + 1); });
    trace.call_seconds[s] += seconds;
    trace.seconds += seconds;
  }
  trace.touched = touched_;
}

void Program::run_phase(Phase phase, Trace* trace) {
  const size_t begin = phase == Phase::prologue         ? 0
                       : phase == Phase::per_microbatch ? microbatch_begin_
                                                        : microbatch_end_;
  const size_t end = phase == Phase::prologue         ? microbatch_begin_
                     : phase == Phase::per_microbatch ? microbatch_end_
                                                      : calls_.size();
  if (staging_) staging_->upload(phase);
  if (trace != nullptr) {
    run_range_traced(begin, end, *trace);
  } else {
    run_or_replay(phase, begin, end);
  }
  if (staging_ && phase == Phase::epilogue) staging_->download();
}

void Program::finish() {
  backend_.synchronise();
  if (staging_ && check_) check_();
}

void Program::run(const std::function<void(int)>& fill) {
  internal_check(!staging_ || fill || plan_.microbatches == 1,
                 "every microbatch wants its own inputs");
  run_phase(Phase::prologue);
  for (int m = 0; m < plan_.microbatches; ++m) {
    if (fill) fill(m);
    run_phase(Phase::per_microbatch);
  }
  run_phase(Phase::epilogue);
  finish();
}

void Program::run_traced(Trace& trace) {
  run_phase(Phase::prologue, &trace);
  for (int m = 0; m < plan_.microbatches; ++m) run_phase(Phase::per_microbatch, &trace);
  run_phase(Phase::epilogue, &trace);
  finish();
}

Bytes Program::address_of(ValueId value) const {
  const Bytes at = homes_[value.at()];
  internal_check(at.count >= 0, "the value has no place in this program");
  return at;
}

std::span<std::byte> Program::bytes_of(ValueId value) {
  if (staging_) {
    internal_check(staging_->has(value), "the host reaches inputs and results only");
    return staging_->bytes_of(value);
  }
  return {home_of(value), static_cast<size_t>(graph_[value].type.bytes().count)};
}

HostMapping Program::map_to_host(ValueId value, HostMapping::Use use) {
  return map_part_to_host(value, 0, graph_[value].type.bytes(), use);
}

HostMapping Program::map_part_to_host(ValueId value, int64_t offset, Bytes size,
                                      HostMapping::Use use) {
  return {backend_, home_of(value) + offset, size, use};
}

void Program::read(ValueId value, int64_t offset, std::span<std::byte> out) {
  backend_.copy_out(out, home_of(value) + offset);
}

void Program::write(ValueId value, int64_t offset, std::span<const std::byte> in) {
  backend_.copy_in(home_of(value) + offset, in);
}

HostMapping Program::output_of(size_t call, size_t output) {
  const TensorRef& tensor = calls_[call].args.outputs[output];
  return {backend_, static_cast<std::byte*>(tensor.data), tensor.type.bytes(),
          HostMapping::Use::read};
}

Bytes Program::persistent_end() const {
  Bytes end;
  for (size_t v = 0; v < graph_.values.size(); ++v) {
    const Value& value = graph_.values[v];
    if (value.producer.valid() || !is_persistent(value.role)) continue;
    end = std::max(end, align_up(plan_.sources[v] + value.type.bytes()));
  }
  return end;
}

Bytes Program::free_between_steps() const { return plan_.arena - persistent_end(); }

HostMapping Program::map_free_between_steps(Bytes size) {
  internal_check(size <= free_between_steps(), "there is less that is free between steps");
  return {backend_, arena_.base() + persistent_end().count, size, HostMapping::Use::write};
}

}  // namespace thimble
