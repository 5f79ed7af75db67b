// Times kernels: what the cpu backend runs against the op's plain reference kernel, same shapes,
// same bytes, one after the other in the same run.
//
//   sample/OP              the largest conformance sample of every op
//   wrn-28-2/OP/SHAPE      every convolution and batch norm of a WRN-28-2 step, batch 100, and how
//                          often a step runs it
//   documents/OP/N         attention of SmolLM2-135M over 1,024 tokens, in N documents of one size;
//                          GFLOP/s are those of one document
//
// Flags are Google Benchmark's: --benchmark_filter=wrn.*conv2d/, --benchmark_min_time=0.5. Plain
// kernels above kTooSlow are left out of the default run.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <unordered_map>

#include "backend/backend.h"
#include "pipeline/pipeline.h"
#include "support/interpreter.h"
#include "support/op_harness.h"

namespace thimble {
namespace {

constexpr double kTooSlow = 5e9;  // flops; a plain kernel does about one GFLOP a second

struct Timed {
  std::string name;
  Signature signature;
  std::vector<Fill> fills;
  int runs = 1;           // in one step of the model
  int64_t documents = 0;  // of one size in a row, where an input says where they begin
};

double elements(const Sample& sample) {
  double sum = 0;
  for (const TensorType& type : sample.inputs) sum += static_cast<double>(type.elements());
  return sum;
}

std::vector<Timed> largest_samples() {
  std::vector<Timed> cases;
  for (const OpDef* op : all_ops()) {
    if (op->view) continue;
    const std::vector<Sample> samples = op->samples();
    const Sample& largest = *std::max_element(
        samples.begin(), samples.end(),
        [](const Sample& a, const Sample& b) { return elements(a) < elements(b); });
    cases.push_back({fmt::format("sample/{}", op->name),
                     {op, largest.attrs, largest.inputs, op->infer(largest.inputs, largest.attrs),
                      largest.accumulate},
                     largest.fills});
  }
  return cases;
}

std::vector<Timed> wrn_step() {
  ModelOptions options;
  options.name = "wrn-28-2";
  options.batch = 100;
  const Graph graph = make_training_graph(options, parse_optimizer("nesterov")).model.graph;
  std::vector<Timed> cases;
  std::unordered_map<Signature, size_t, SignatureHash> known;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const Signature signature = signature_of(graph, make_id<NodeId>(n));
    const std::string_view op = signature.op->name;
    if (!op.starts_with("conv2d") && !op.starts_with("batch_norm")) continue;
    const auto [at, fresh] = known.try_emplace(signature, cases.size());
    if (!fresh) {
      ++cases[at->second].runs;
      continue;
    }
    // Statistics must be positive; the rest does not care.
    const std::vector<Fill> fills(signature.inputs.size(), {Fill::Kind::uniform, 0.5, 1.5});
    const std::string shape =
        fmt::format("{}{}", to_string(signature.inputs[0].shape),
                    signature.inputs.size() > 1 ? "x" + to_string(signature.inputs[1].shape) : "");
    cases.push_back({fmt::format("wrn-28-2/{}/{}", op, shape), signature, fills});
  }
  return cases;
}

std::vector<Timed> packed_attention() {
  constexpr int64_t kLength = 1024;
  const TensorType q = {{1, kLength, 9 * 64}}, kv = {{1, kLength, 3 * 64}};
  const TensorType lse = {{1, 9, kLength}}, begins = {{1, kLength}, DType::i32};
  const Attrs attrs = {{"heads", int64_t{9}},
                       {"groups", int64_t{3}},
                       {"causal", int64_t{1}},
                       {"documents", int64_t{1}}};
  const Fill small = {Fill::Kind::uniform, -1, 1}, above = {Fill::Kind::uniform, 4, 6};
  std::vector<Timed> cases;
  for (const int64_t documents : {1, 4, 16}) {
    for (const char* name : {"attention", "attention_backward"}) {
      const OpDef& op = *find_op(name);
      const bool forward = op.gradient != nullptr;
      std::vector<TensorType> inputs = {q, kv, kv};
      std::vector<Fill> fills = {small, small, small};
      if (!forward) {
        inputs.insert(inputs.end(), {q, lse, q});
        fills.insert(fills.end(), {small, above, small});
      }
      inputs.push_back(begins);
      cases.push_back({.name = fmt::format("documents/{}/{}", name, documents),
                       .signature = {&op, attrs, inputs, op.infer(inputs, attrs)},
                       .fills = fills,
                       .documents = documents});
    }
  }
  return cases;
}

// The tensors of one call, alive while it is timed.
class Call {
 public:
  explicit Call(const Timed& timed) : timed_(timed) {
    for (size_t i = 0; i < timed.signature.inputs.size(); ++i) {
      tensors_.emplace_back(timed.signature.inputs[i]);
      fill_tensor(tensors_.back(), i < timed.fills.size() ? timed.fills[i] : Fill{}, i);
    }
    if (timed.documents > 0) {
      Tensor& begins = tensors_.back();
      const int64_t length = begins.elements(), each = length / timed.documents;
      for (int64_t i = 0; i < length; ++i) begins.set(i, static_cast<double>(i / each * each));
    }
    for (const TensorType& type : timed.signature.outputs) {
      tensors_.emplace_back(type);
      fill_tensor(tensors_.back(), {Fill::Kind::zeros}, 0);
    }
    for (Tensor& tensor : tensors_) refs_.push_back(tensor.ref());
    const std::span<const TensorRef> all = refs_;
    args_.attrs = &timed_.signature.attrs;
    args_.inputs = all.first(timed.signature.inputs.size());
    args_.outputs = all.subspan(timed.signature.inputs.size());
    args_.accumulate = timed.signature.accumulate;
  }

  // Null backend: the reference kernel.
  void time(benchmark::State& state, Backend* backend) {
    const OpDef& op = *timed_.signature.op;
    Kernel* kernel = backend != nullptr ? &backend->kernel(timed_.signature) : nullptr;
    const Bytes scratch = kernel != nullptr ? kernel->workspace
                          : op.reference_workspace != nullptr
                              ? op.reference_workspace(timed_.signature)
                              : Bytes();
    Tensor workspace(TensorType{{scratch.count}, DType::u8});
    args_.workspace = workspace.bytes().data();
    for ([[maybe_unused]] const auto& iteration : state) {
      if (kernel != nullptr) {
        kernel->run(args_);
      } else {
        op.reference(args_);
      }
      benchmark::ClobberMemory();
    }
    if (kernel != nullptr) state.SetLabel(kernel->name);
  }

 private:
  const Timed& timed_;
  std::vector<Tensor> tensors_;
  std::vector<TensorRef> refs_;
  KernelArgs args_;
};

// One line per pair: both times and their ratio.
class RatioReporter final : public benchmark::BenchmarkReporter {
 public:
  explicit RatioReporter(const std::unordered_map<std::string, const Timed*>& cases)
      : cases_(cases) {}

  bool ReportContext(const Context&) override {
    fmt::print("{:<72}{:>11}{:>10}{:>12}{:>8}  {}\n", "kernel", "cpu us", "GFLOP/s", "plain us",
               "ratio", "which");
    return true;
  }

  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs) {
      std::string full = run.benchmark_name();
      full.resize(full.rfind("/real_time"));
      const size_t cut = full.rfind(" plain");
      const double us = run.GetAdjustedRealTime();
      if (cut != std::string::npos) {
        if (!line_.empty())
          fmt::print("{}{:>12.1f}{:>8.3f}  {}\n", line_, us, fast_us_ / us, label_);
        line_.clear();
        continue;
      }
      flush();
      const Timed& timed = *cases_.at(full);
      const double flops = timed.signature.op->work_of(timed.signature).flops;
      const std::string name =
          timed.runs > 1 ? fmt::format("{} ({} a step)", full, timed.runs) : full;
      line_ = fmt::format("{:<72}{:>11.1f}{:>10.1f}", name, us, flops / us / 1e3);
      label_ = run.report_label;
      fast_us_ = us;
      if (full.starts_with("wrn-28-2/")) step_us_ += us * timed.runs;
    }
    std::fflush(stdout);
  }

  void Finalize() override {
    flush();
    if (step_us_ > 0) {
      fmt::print("\nWRN-28-2, batch 100: the kernels above take {:.1f} ms of a step\n",
                 step_us_ / 1e3);
    }
  }

 private:
  // A fast kernel whose plain one was not timed.
  void flush() {
    if (!line_.empty()) fmt::print("{}{:>12}{:>8}  {}\n", line_, "-", "-", label_);
    line_.clear();
  }

  const std::unordered_map<std::string, const Timed*>& cases_;
  std::string line_, label_;
  double fast_us_ = 0;
  double step_us_ = 0;
};

int run(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  const auto backend = make_backend("cpu", 0);
  std::vector<Timed> cases = largest_samples();
  std::ranges::move(wrn_step(), std::back_inserter(cases));
  std::ranges::move(packed_attention(), std::back_inserter(cases));
  std::unordered_map<std::string, const Timed*> by_name;
  for (const Timed& timed : cases) {
    by_name[timed.name] = &timed;
    const auto add = [&](const std::string& name, Backend* on) {
      benchmark::RegisterBenchmark(name.c_str(),
                                   [&timed, on](benchmark::State& s) { Call(timed).time(s, on); })
          ->Unit(benchmark::kMicrosecond)
          ->UseRealTime();
    };
    add(timed.name, backend.get());
    if (timed.signature.op->work_of(timed.signature).flops < kTooSlow) {
      add(timed.name + " plain", nullptr);
    }
  }
  RatioReporter reporter(by_name);
  benchmark::RunSpecifiedBenchmarks(&reporter);
  return 0;
}

}  // namespace
}  // namespace thimble

int main(int argc, char** argv) { return thimble::run(argc, argv); }
